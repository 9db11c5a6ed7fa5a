"""What is written from findings: summary.json, posterior.nc, the terminal, the page and its figures."""

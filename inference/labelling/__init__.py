"""Which cluster is which joint outcome of the nodes: labels, names, environments, declared assumptions."""

"""Names for clusters: what each looks like, and what a person calls it."""

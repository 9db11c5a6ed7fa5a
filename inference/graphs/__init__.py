"""Graphs over the nodes: equivalence classes, comparison, exact search."""

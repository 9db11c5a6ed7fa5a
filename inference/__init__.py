"""Objectives, training, clusters, graphs, results, and the command lines."""

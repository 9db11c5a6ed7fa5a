"""Objectives, training, clusters, graphs, results, and the command lines."""

if __name__ == "inference":
    from causalpima.checkout import alias

    alias(__name__)

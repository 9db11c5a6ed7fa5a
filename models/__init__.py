"""The generative side: the graph over N, the mixture on Z, the decoders, and the Pyro model that joins them."""

if __name__ == "models":
    from causalpima.checkout import alias

    alias(__name__)

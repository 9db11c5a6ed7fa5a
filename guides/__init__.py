"""The inference side: encoders, their fusion, and the Pyro guide."""

if __name__ == "guides":
    from causalpima.checkout import alias

    alias(__name__)

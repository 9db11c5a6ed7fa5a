"""The inference side: encoders, their fusion, and the Pyro guide."""

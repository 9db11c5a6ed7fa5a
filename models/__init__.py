"""The generative side: the graph over N, the mixture on Z, the decoders, and the Pyro model that joins them."""

"""Posteriors over graphs by Hamiltonian Monte Carlo: Pyro programs in which N is summed out, and their chains."""

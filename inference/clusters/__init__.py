"""Clusters read out of the latent space."""

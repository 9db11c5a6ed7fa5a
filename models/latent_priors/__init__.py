"""Priors on Z without cells."""

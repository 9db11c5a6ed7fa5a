"""Ablations: the same data and seeds under several settings, and tables of what each is worth."""

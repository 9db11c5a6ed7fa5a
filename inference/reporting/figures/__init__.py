"""Figures of subjects that have no file of their own in `findings`, and their writing."""

"""Data as training takes them."""

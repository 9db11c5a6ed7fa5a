"""Evidence lower bounds, each from Pyro traces and in closed form."""

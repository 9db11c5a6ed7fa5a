"""Whether a fit can be believed: the guide, the model against the data, several starts, chains."""

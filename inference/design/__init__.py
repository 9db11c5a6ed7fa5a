"""Effects of what the experimenter set: differences between measured means, without a model."""

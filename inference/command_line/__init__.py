"""What the commands share: parsing, and errors as one line."""

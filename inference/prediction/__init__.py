"""What a finished fit says of new samples."""

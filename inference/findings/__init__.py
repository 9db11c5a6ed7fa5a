"""What a run found, in arrays, plain values and sentences: one file a subject."""

"""The page of a run: what it holds, in words, tables and pictures."""

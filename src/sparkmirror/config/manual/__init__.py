"""The configuration manual, printed from the tables."""

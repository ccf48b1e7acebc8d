"""The tables of keys, one subject per module."""

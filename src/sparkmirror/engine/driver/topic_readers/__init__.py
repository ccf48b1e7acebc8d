"""Conductors of one driver read the offsets topic together."""

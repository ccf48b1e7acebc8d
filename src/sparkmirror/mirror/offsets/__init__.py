"""Offset syncs, run maps, checkpoints and the translation of group offsets."""

"""The transformations that look into keys and values."""

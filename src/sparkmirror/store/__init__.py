"""Connect's internal topics, byte-compatible."""

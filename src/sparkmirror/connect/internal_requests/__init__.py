"""Requests between the workers of a group: session keys, signatures, and what the leader does."""

"""Existing records: a remote partition holds records, and the connector has no position of it."""

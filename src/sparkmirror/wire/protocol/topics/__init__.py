"""Requests about topics: metadata, leaders, configs of the log, offsets by time."""

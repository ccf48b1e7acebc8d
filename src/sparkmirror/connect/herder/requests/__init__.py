"""Requests that change configs or offsets, or restart connectors."""

"""The front door: one module per command."""

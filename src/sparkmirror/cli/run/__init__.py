"""`sparkmirror run`."""

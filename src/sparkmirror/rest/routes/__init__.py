"""The endpoints of Connect's REST API, and the JSON they read and write."""

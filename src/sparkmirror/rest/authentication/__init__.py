"""Who may call the REST API: Basic authentication and bearer tokens."""

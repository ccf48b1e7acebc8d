"""HTTP: listeners, connections, routing, limits, authentication, access log."""

"""Passwords, config providers, variables, JAAS entries, redaction."""

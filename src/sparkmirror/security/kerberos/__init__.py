"""Logins with Kerberos: options of the login module, credentials, security contexts."""

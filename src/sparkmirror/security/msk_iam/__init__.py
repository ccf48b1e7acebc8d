"""Logins of Amazon MSK with AWS IAM: regions, credentials, signed tokens."""

"""TLS contexts from the `ssl.*` keys of Java's clients and listeners."""

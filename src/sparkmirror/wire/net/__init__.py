"""Connections to brokers: sockets, TLS, SASL, channels, routing."""

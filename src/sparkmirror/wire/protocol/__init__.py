"""Kafka's requests and responses."""

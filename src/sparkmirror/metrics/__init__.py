"""Figures by name: what is counted, how Kafka computes it, and its text for Prometheus."""

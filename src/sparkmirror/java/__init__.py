"""Finds the Java that runs Kafka's programs and Spark."""

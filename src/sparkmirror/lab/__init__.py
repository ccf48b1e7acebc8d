"""Real Kafka clusters on this computer, for the demo, the tests and people's experiments."""

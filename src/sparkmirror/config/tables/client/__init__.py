"""Tables of the keys of Kafka's clients."""

"""One Kafka cluster of the lab: brokers, listeners, certificates, topics, actions."""

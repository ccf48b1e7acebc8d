"""This worker as a member of the Kafka group of its `group.id`."""

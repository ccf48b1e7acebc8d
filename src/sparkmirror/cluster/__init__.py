"""One Kafka cluster as the control plane sees it; the only importer of kafka-python."""

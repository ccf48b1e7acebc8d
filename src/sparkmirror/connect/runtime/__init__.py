"""What runs on a worker: connectors, their tasks, their statuses."""

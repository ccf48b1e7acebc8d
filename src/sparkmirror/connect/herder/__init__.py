"""What a worker can be asked: the herder, its thread, its requests and queries."""

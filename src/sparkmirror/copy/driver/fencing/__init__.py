"""How the driver fences a task that lost its lease, and takes over its partitions."""

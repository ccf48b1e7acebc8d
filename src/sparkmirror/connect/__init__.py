"""What a Connect worker does: herder, lifecycle, the three connectors. Knows no HTTP, no Spark."""

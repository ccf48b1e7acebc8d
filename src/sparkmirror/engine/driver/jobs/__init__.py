"""The jobs of a driver: one conductor for each source connector."""

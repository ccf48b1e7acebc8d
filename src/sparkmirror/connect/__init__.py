"""A Connect worker: the herder, the runtime, the three connectors. Imports no HTTP and no Spark."""

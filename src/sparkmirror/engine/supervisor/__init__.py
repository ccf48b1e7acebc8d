"""The parent of a driver process: starts it, commands it, restarts it. Never imports pyspark."""

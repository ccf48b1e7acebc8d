"""The parent of a driver process: starts it, commands it, starts it again. Never loads Spark."""

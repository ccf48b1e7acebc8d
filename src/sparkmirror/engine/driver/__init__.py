"""The driver process: Spark application, control server, stores in the offsets topic."""

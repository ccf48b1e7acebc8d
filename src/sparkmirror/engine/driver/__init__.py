"""The Spark driver process: its session, its control server, its stores."""

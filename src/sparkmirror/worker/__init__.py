"""One worker process: herder, REST and Spark put together. Knows no command line."""

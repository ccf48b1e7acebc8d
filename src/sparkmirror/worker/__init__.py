"""One worker process: wires herder, REST server and Spark drivers. Knows no command line."""

"""The Spark applications of a worker, and the tasks of source connectors in them."""

"""The Java that runs Kafka and Spark: which one is used."""

"""sparkmirror: a drop-in for Kafka MirrorMaker 2, with its data pipeline on Spark."""

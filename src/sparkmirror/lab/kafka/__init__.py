"""Kafka's jars, Java, command-line tools, and Java MirrorMaker 2 itself."""

"""A KafkaMirrorMaker2 of Strimzi, read as the properties of an mm2.properties."""

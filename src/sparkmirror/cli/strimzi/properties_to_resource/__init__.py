"""An mm2.properties, written as KafkaMirrorMaker2 resources of Strimzi."""

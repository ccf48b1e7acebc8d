"""Strimzi's resource KafkaMirrorMaker2 as mm2.properties, and back."""

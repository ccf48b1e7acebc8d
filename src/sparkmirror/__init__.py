"""sparkmirror: a drop-in for Kafka MirrorMaker 2, with its data pipeline on Spark."""

from sparkmirror.compiled_modules import install_finder

install_finder()

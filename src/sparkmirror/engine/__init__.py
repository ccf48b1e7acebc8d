"""Spark: data source, query, driver process, control channel; the only importer of pyspark."""

"""Bytes: record batches in, record batches out. Knows no Spark and no Connect."""

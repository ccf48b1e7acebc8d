"""What Spark runs: data source, tasks, streaming query. The only importers of pyspark."""

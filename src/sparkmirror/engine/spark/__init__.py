"""What Spark runs: data source, tasks, streaming query, receipts. Only here pyspark is imported."""

"""The Spark data source `sparkmirror-kafka`: records of Kafka as DataFrames, in both directions.

    spark.dataSource.register(KafkaDataSource)
    spark.readStream.format("sparkmirror-kafka").option("subscribe", "orders")...

It is for programs of users; the mirror itself does not use it. The modules whose names begin with
`kafka` import Spark and run in Spark's processes:

    kafka             the class to register
    kafka_readers     driver: offsets and ranges; executors: Arrow batches of a range
    kafka_writers     executors: rows to records
    kafka_rows        the columns, and Arrow batches from and to records

The others know Kafka and no Spark: options, offsets, ranges, one reader of a range, one producer,
and a pool of clients.
"""

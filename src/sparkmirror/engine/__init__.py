"""Spark is launcher and supervisor of the copy loop; it does not move the records.

Three things are unlike other Spark programs:

- `read()` of the data source writes to Kafka. It runs `copy.task`, which copies record batches from
  the source to the target cluster; its rows are only receipts of what was copied.
- A micro-batch is an epoch, minutes long. A Spark offset is an epoch number and nothing else.
- The conductor in the driver grants leases on partitions and fences old owners: a second scheduler
  beside Spark's.

The reasons are measurements (docs/benchmarks.md). A batch that is passed on as it is costs a task
0.6 us of processor time for each record of 100 bytes; a loop that handles the records one by one
costs 3.1 us. The change from one micro-batch to the next takes Spark 0.4 to 0.7 s, and nothing is
copied meanwhile; so epochs are long. Spark may run a task twice, or still run one that it has given
up; so leases and fences decide which task writes to a partition. Spark gives what the loop lacks:
processes on many machines, retries, resource managers.

    supervisor/   the parent of a driver process, in the worker or the CLI; never loads Spark
    driver/       the driver process: Spark application, control server, stores
    spark/        the only importers of pyspark: data source, tasks, streaming query
"""

"""The writers of the data source: batch and stream.

A task sends its rows while it gets them, and ends when the brokers have them all. Then it leaves
its producer to the next task. The end of its rows does not mean that there are no more: Spark ends
them in the same way if the task is cancelled or what comes before it has failed. Then Spark runs
the task again, and the rows are written twice: delivery is at-least-once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from sparkmirror.datasource.client_pool import ClientPool, new_router, producer_codec
from sparkmirror.datasource.kafka_rows import ArrowBatch, SinkColumns
from sparkmirror.datasource.options import SinkOptions
from sparkmirror.datasource.record_producer import RecordProducer


@dataclass(frozen=True, slots=True)
class WrittenRecords(WriterCommitMessage):
    """How many records a task has written."""

    count: int


PRODUCERS: ClientPool[RecordProducer] = ClientPool()
"""The producers of the tasks of this process."""


def new_producer(options: SinkOptions) -> RecordProducer:
    """Return a producer. It connects with its first record. Raises ConfigError."""
    codec = producer_codec(options.client)
    return RecordProducer(
        new_router(options.client),
        codec=codec,
        batch_size=options.batch_size,
        timeout_s=options.delivery_timeout_s,
    )


def write_batches(
    options: SinkOptions, columns: SinkColumns, batches: Iterator[ArrowBatch]
) -> WrittenRecords:
    """Write all rows. Returns when the brokers have them."""
    count = 0
    with PRODUCERS.lend(options.identity, lambda: new_producer(options)) as producer:
        for batch in batches:
            for topic, partition, record in columns.records(batch):
                producer.send(topic, partition, record)
            count += batch.num_rows
        producer.flush()
    return WrittenRecords(count)


class KafkaBatchWriter(DataSourceArrowWriter):
    """Appends the rows of a DataFrame to topics."""

    def __init__(self, options: SinkOptions, columns: SinkColumns) -> None:
        self._options = options
        self._columns = columns

    def write(self, iterator: Iterator[ArrowBatch]) -> WrittenRecords:
        """Write the rows of one task."""
        return write_batches(self._options, self._columns, iterator)


class KafkaStreamWriter(DataSourceStreamArrowWriter):
    """Appends the rows of each micro-batch to topics."""

    def __init__(self, options: SinkOptions, columns: SinkColumns) -> None:
        self._options = options
        self._columns = columns

    def write(self, iterator: Iterator[ArrowBatch]) -> WrittenRecords:
        """Write the rows of one task."""
        return write_batches(self._options, self._columns, iterator)

"""The writers of the data source: batch and stream.

A task sends its rows while it gets them, and ends when the brokers have them all. The end of its
rows does not mean that there are no more: Spark ends them in the same way if the task is cancelled
or what comes before it has failed. Then Spark runs the task again, and the rows are written twice:
delivery is at-least-once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from sparkmirror.datasource.client_router import new_router, producer_codec
from sparkmirror.datasource.kafka_rows import ArrowBatch, SinkColumns
from sparkmirror.datasource.options import SinkOptions
from sparkmirror.datasource.record_producer import RecordProducer


@dataclass(frozen=True, slots=True)
class WrittenRecords(WriterCommitMessage):
    """How many records a task has written."""

    count: int


def write_batches(
    options: SinkOptions, columns: SinkColumns, batches: Iterator[ArrowBatch]
) -> WrittenRecords:
    """Write all rows. Returns when the brokers have them."""
    producer: RecordProducer | None = None
    count = 0
    with closing(new_router(options.client)) as router:
        for batch in batches:
            for topic, partition, record in columns.records(batch):
                if producer is None:
                    producer = RecordProducer(
                        router,
                        codec=producer_codec(options.client),
                        batch_size=options.batch_size,
                        timeout_s=options.delivery_timeout_s,
                    )
                producer.send(topic, partition, record)
            count += batch.num_rows
        if producer is not None:
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

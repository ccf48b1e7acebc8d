"""The readers of the data source: batch and stream.

Spark makes a reader in each process that needs one, and pickles it to the executors. A reader holds
the options; the connections of the driver are made when they are needed and do not travel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from sparkmirror.datasource.client_pool import ROUTERS, new_router
from sparkmirror.datasource.kafka_rows import ArrowBatch, to_arrow
from sparkmirror.datasource.offset_positions import OffsetsJson, offsets_to_json
from sparkmirror.datasource.offset_ranges import OffsetRange
from sparkmirror.datasource.options import SourceOptions
from sparkmirror.datasource.range_reader import FetchedBatch, LeaderLog, RangeReader
from sparkmirror.datasource.record_producer import record_bytes
from sparkmirror.datasource.source_planner import SourcePlanner
from sparkmirror.datasource.stream_offsets import NOTHING_READ, OffsetJson
from sparkmirror.datasource.subscribed_logs import SubscribedLogs
from sparkmirror.wire.net.routing import Router

ARROW_ROWS = 10_000
ARROW_BYTES = 8 << 20
"""An Arrow batch ends with the record batch that reaches one of both."""


class RangeInputPartition(InputPartition):
    """The range of one Spark task."""

    def __init__(self, one: OffsetRange) -> None:
        super().__init__(one)
        self.range = one

    def __repr__(self) -> str:
        return f"RangeInputPartition({self.range})"


def new_planner(options: SourceOptions, router: Router) -> SourcePlanner:
    """Return a planner that asks brokers through this router."""
    logs = SubscribedLogs(router, options.subscription, read_committed=options.read_committed)
    return SourcePlanner(options, logs)


def read_range(options: SourceOptions, one: OffsetRange) -> Iterator[ArrowBatch]:
    """Yield the records of a range as Arrow batches."""
    client = options.client
    with ROUTERS.lend(client.identity, lambda: new_router(client)) as router:
        reader = RangeReader(
            one,
            LeaderLog(router, one.partition, read_committed=options.read_committed),
            fail_on_data_loss=options.fail_on_data_loss,
            fetch_bytes=options.fetch_bytes,
        )
        for batches in group_batches(reader.read()):
            yield to_arrow(one.partition, batches, include_headers=options.include_headers)


def group_batches(batches: Iterable[FetchedBatch]) -> Iterator[list[FetchedBatch]]:
    """Collect record batches until they are an Arrow batch."""
    group: list[FetchedBatch] = []
    rows = size = 0
    for batch in batches:
        group.append(batch)
        rows += len(batch.records)
        size += sum(map(record_bytes, batch.records))
        if rows >= ARROW_ROWS or size >= ARROW_BYTES:
            yield group
            group, rows, size = [], 0, 0
    if group:
        yield group


def _read(options: SourceOptions, partition: InputPartition) -> Iterator[ArrowBatch]:
    """Read the range of a task. If there is nothing to read, Spark starts a task without one."""
    if isinstance(partition, RangeInputPartition):
        yield from read_range(options, partition.range)


class KafkaBatchReader(DataSourceReader):
    """Reads the ranges that are there when the query is planned."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """Return one partition for each range. Blocks."""
        with closing(new_router(self._options.client)) as router:
            ranges = new_planner(self._options, router).batch_ranges()
        return [RangeInputPartition(one) for one in ranges]

    def read(self, partition: InputPartition) -> Iterator[ArrowBatch]:
        """Yield the records of a range."""
        return _read(self._options, partition)


class KafkaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Gives Spark the ranges of each micro-batch, by their exact ends."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._router: Router | None = None
        self._planner: SourcePlanner | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave the connections of the driver behind."""
        return {"_options": self._options, "_router": None, "_planner": None}

    def initialOffset(self) -> OffsetJson:  # noqa: N802 - the name is Spark's
        """Return the offset of a query that has read nothing. It is always the same."""
        return NOTHING_READ

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the limit of a micro-batch: `maxOffsetsPerTrigger`, or none."""
        limit = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def latestOffset(self, start: OffsetJson, limit: ReadLimit) -> OffsetJson:  # noqa: N802
        """Return where the next micro-batch ends. Blocks."""
        max_rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        return self._driver_planner().latest_offsets(start, max_rows)

    def reportLatestOffset(self) -> OffsetsJson | None:  # noqa: N802
        """Return the ends of the logs for the progress of the query, if they are known."""
        ends = self._driver_planner().listed_ends
        return None if ends is None else offsets_to_json(ends)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Stop at the present ends of the logs."""
        self._driver_planner().stop_at_present_ends()

    def partitions(self, start: OffsetJson, end: OffsetJson) -> Sequence[InputPartition]:
        """Return one partition for each range of a micro-batch. Blocks."""
        ranges = self._driver_planner().ranges(start, end)
        return [RangeInputPartition(one) for one in ranges]

    def read(self, partition: InputPartition) -> Iterator[ArrowBatch]:
        """Yield the records of a range."""
        return _read(self._options, partition)

    def stop(self) -> None:
        """Close the connections of the driver."""
        if self._router is not None:
            self._router.close()

    def _driver_planner(self) -> SourcePlanner:
        if self._planner is None:
            self._router = new_router(self._options.client)
            self._planner = new_planner(self._options, self._router)
        return self._planner

"""Receipts as rows: what lands in the receipts directory, and how it may be read there.

    <receipts>/run=<application>/day=<date>/part-*.parquet

`spark.read.parquet("<receipts>")` sees every run; `run` and `day` are columns like the others. A
task attempt that fails leaves no receipt, although what it had acknowledged is copied: the ledger
of positions is Connect's offsets topic, receipts are the journal.
"""

from __future__ import annotations

from dataclasses import dataclass

from sparkmirror.copy.receipt import Receipt

Row = tuple[object, ...]

SCHEMA = """
    flow string, topic string, partition int, remote_topic string,
    source_first bigint, source_last bigint, target_first bigint, target_last bigint,
    records bigint, bytes bigint, lanes map<string, bigint>,
    first_ms bigint, last_ms bigint,
    epoch bigint, task int, attempt int, started_ms bigint, ended_ms bigint
"""

COLUMNS = (
    *("flow", "topic", "partition", "remote_topic"),
    *("source_first", "source_last", "target_first", "target_last"),
    *("records", "bytes", "lanes"),
    "timestamp_millis(nullif(first_ms, -1)) AS first_time",
    "timestamp_millis(nullif(last_ms, -1)) AS last_time",
    *("epoch", "task", "attempt"),
    "timestamp_millis(started_ms) AS started",
    "timestamp_millis(ended_ms) AS ended",
    "date(timestamp_millis(ended_ms)) AS day",
)
"""What is kept, as SQL over the schema: times as times, and the day to find things by."""

KEPT_BY = "day"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stay:
    """When and as what a task attempt was there."""

    flow: str
    epoch: int
    task: int
    attempt: int
    started_ms: int
    ended_ms: int

    def row(self, receipt: Receipt, lanes: dict[str, int]) -> Row:
        """One receipt, in the order of the schema."""
        return (
            *(self.flow, receipt.source.topic, receipt.source.partition, receipt.target.topic),
            *(receipt.source_first, receipt.source_last),
            *(receipt.target_first, receipt.target_last),
            *(receipt.records, receipt.bytes, lanes),
            *(receipt.first_ms, receipt.last_ms),
            *(self.epoch, self.task, self.attempt, self.started_ms, self.ended_ms),
        )

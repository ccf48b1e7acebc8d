"""Receipts as rows: what lands in the receipts directory, and how it may be read there.

    <receipts>/run=<application>/day=<date>/part-*.parquet

`spark.read.parquet("<receipts>")` sees every run; `run` and `day` are columns like the others. A
task attempt that is lost hands in no receipt, although what it had appended is copied. The driver
writes it then, as far as it knows: `outcome` is `lost` instead of `done`, lanes and times of
records are missing. Only a driver that dies itself leaves a hole: the ledger of positions is
Connect's offsets topic, receipts are the journal.
"""

from __future__ import annotations

from dataclasses import dataclass

from sparkmirror.copy.driver.pending_receipts import MissingReceipt
from sparkmirror.copy.receipt import Receipt

ReceiptRow = tuple[object, ...]

_COLUMN_TYPES = {
    **dict.fromkeys(("flow", "topic"), "string"),
    "partition": "int",
    "remote_topic": "string",
    **dict.fromkeys(("source_first", "source_last", "target_first", "target_last"), "bigint"),
    **dict.fromkeys(("records", "bytes"), "bigint"),
    "lanes": "map<string, bigint>",
    **dict.fromkeys(("first_ms", "last_ms", "epoch"), "bigint"),
    **dict.fromkeys(("task", "attempt"), "int"),
    "outcome": "string",
    **dict.fromkeys(("started_ms", "ended_ms"), "bigint"),
}
COLUMN_NAMES = tuple(_COLUMN_TYPES)
"""What a row holds, in this order."""
RECEIPT_SCHEMA = ", ".join(f"{name} {kind}" for name, kind in _COLUMN_TYPES.items())
RECEIPT_ARRAY_TYPE = (
    f"array<struct<{', '.join(f'{name}: {kind}' for name, kind in _COLUMN_TYPES.items())}>>"
)
"""Several rows as one value, for what is written without a task."""

TABLE_COLUMNS = (
    *("flow", "topic", "partition", "remote_topic"),
    *("source_first", "source_last", "target_first", "target_last"),
    *("records", "bytes", "lanes"),
    "timestamp_millis(nullif(first_ms, -1)) AS first_time",
    "timestamp_millis(nullif(last_ms, -1)) AS last_time",
    *("epoch", "task", "attempt", "outcome"),
    "timestamp_millis(started_ms) AS started",
    "timestamp_millis(ended_ms) AS ended",
    "date(timestamp_millis(ended_ms)) AS day",
)
"""What is kept, as SQL over the schema: times as times, and the day to find things by."""

PARTITION_COLUMN = "day"
OUTCOME_DONE = "done"
OUTCOME_LOST = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAttemptInfo:
    """When and as what a task attempt was there."""

    flow: str
    epoch: int
    task: int
    attempt: int
    started_ms: int
    ended_ms: int
    outcome: str = OUTCOME_DONE

    def to_row(self, receipt: Receipt, lanes: dict[str, int]) -> ReceiptRow:
        """One receipt, in the order of the schema."""
        return (
            *(self.flow, receipt.source.topic, receipt.source.partition, receipt.target.topic),
            *(receipt.source_first, receipt.source_last),
            *(receipt.target_first, receipt.target_last),
            *(receipt.records, receipt.bytes, lanes),
            *(receipt.first_ms, receipt.last_ms),
            *(self.epoch, self.task, self.attempt, self.outcome, self.started_ms, self.ended_ms),
        )


def missing_receipt_row(flow: str, unclaimed: MissingReceipt) -> ReceiptRow:
    """A receipt that the driver writes in the place of an attempt."""
    hello = unclaimed.hello
    stay = TaskAttemptInfo(
        flow=flow,
        epoch=hello.epoch,
        task=hello.task,
        attempt=hello.retry,
        started_ms=unclaimed.started_ms,
        ended_ms=unclaimed.ended_ms,
        outcome=OUTCOME_LOST,
    )
    return stay.to_row(unclaimed.receipt, {})

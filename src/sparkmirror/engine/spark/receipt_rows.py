"""Receipts as rows: the schema of the receipts directory.

    <receipts>/run=<application>/day=<date>/part-*.parquet

`spark.read.parquet("<receipts>")` reads all runs, with `run` and `day` as columns. A task attempt
that is lost returns no receipt, although the records it had appended are copied. The driver writes
the receipt then, from the reports of the attempt: `outcome` is `lost` instead of `done`, and lanes
and record times are missing. If the driver itself dies, the receipts of its last epoch are missing.
Positions do not depend on receipts: they are in Connect's offsets topic.
"""

from __future__ import annotations

from dataclasses import dataclass

from sparkmirror.copy.driver.lost_attempt_receipts import MissingReceipt
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
"""The columns of a row, in this order."""
RECEIPT_SCHEMA = ", ".join(f"{name} {kind}" for name, kind in _COLUMN_TYPES.items())
RECEIPT_ARRAY_TYPE = (
    f"array<struct<{', '.join(f'{name}: {kind}' for name, kind in _COLUMN_TYPES.items())}>>"
)
"""All rows as one SQL value: the driver writes receipts without a Python worker."""

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
"""The stored columns, as SQL over the schema: milliseconds become timestamps."""

PARTITION_COLUMN = "day"
OUTCOME_DONE = "done"
OUTCOME_LOST = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAttemptInfo:
    """What the receipts of one task attempt have in common."""

    flow: str
    epoch: int
    task: int
    attempt: int
    started_ms: int
    ended_ms: int
    outcome: str = OUTCOME_DONE

    def to_row(self, receipt: Receipt, lanes: dict[str, int]) -> ReceiptRow:
        """The row of one receipt, in the order of the schema."""
        return (
            *(self.flow, receipt.source.topic, receipt.source.partition, receipt.target.topic),
            *(receipt.source_first, receipt.source_last),
            *(receipt.target_first, receipt.target_last),
            *(receipt.records, receipt.bytes, lanes),
            *(receipt.first_ms, receipt.last_ms),
            *(self.epoch, self.task, self.attempt, self.outcome, self.started_ms, self.ended_ms),
        )


def missing_receipt_row(flow: str, missing: MissingReceipt) -> ReceiptRow:
    """The row that the driver writes for a lost task attempt."""
    hello = missing.hello
    attempt = TaskAttemptInfo(
        flow=flow,
        epoch=hello.epoch,
        task=hello.task,
        attempt=hello.retry,
        started_ms=missing.started_ms,
        ended_ms=missing.ended_ms,
        outcome=OUTCOME_LOST,
    )
    return attempt.to_row(missing.receipt, {})

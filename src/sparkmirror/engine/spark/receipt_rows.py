"""Receipts as rows: the schema of the receipts directory.

    <receipts>/run=<application>/day=<date>/part-*.parquet

`spark.read.parquet("<receipts>")` reads all runs, with `run` and `day` as columns. A task attempt
that is lost returns no receipt, although the records it had appended are copied. The driver writes
the receipt then, from the reports of the attempt: `outcome` is `lost` instead of `done`, and lanes
and record times are missing. If the driver itself dies, the receipts of its last epoch are missing.
Positions do not depend on receipts: they are in Connect's offsets topic.

An attempt also returns one row without a topic, which is not stored: its receipts have come, though
there may be none. So the driver knows which ones it has to write.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sparkmirror.copy.driver.lost_attempt_receipts import MissingReceipt
from sparkmirror.copy.receipt import AttemptEpoch, Receipt

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
    "attempt_number": "bigint",
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

_TOPIC, _EPOCH, _ATTEMPT_NUMBER = map(COLUMN_NAMES.index, ("topic", "epoch", "attempt_number"))

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
    """The number of earlier attempts of the task in the epoch."""
    attempt_number: int
    """The number of the attempt, which the driver never uses twice."""
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
            *self._columns,
        )

    def to_rows(self, receipts: Iterable[tuple[Receipt, dict[str, int]]]) -> list[ReceiptRow]:
        """The rows that an attempt returns: one without a topic, and one for each receipt."""
        nothing = [None] * (len(COLUMN_NAMES) - len(self._columns))
        returned = (*nothing, *self._columns)
        return [returned, *(self.to_row(receipt, lanes) for receipt, lanes in receipts)]

    @property
    def _columns(self) -> ReceiptRow:
        return (
            *(self.epoch, self.task, self.attempt, self.outcome),
            *(self.started_ms, self.ended_ms, self.attempt_number),
        )


def receipts_of(rows: Iterable[ReceiptRow]) -> list[ReceiptRow]:
    """Return the rows that are receipts."""
    return [row for row in rows if row[_TOPIC] is not None]


def returned_attempts(rows: Iterable[ReceiptRow]) -> set[AttemptEpoch]:
    """Return the attempts that have returned these rows."""
    return {
        AttemptEpoch(int(str(row[_EPOCH])), int(str(row[_ATTEMPT_NUMBER])))
        for row in rows
        if row[_TOPIC] is None
    }


def missing_receipt_row(flow: str, missing: MissingReceipt) -> ReceiptRow:
    """The row that the driver writes for a lost task attempt."""
    hello = missing.hello
    attempt = TaskAttemptInfo(
        flow=flow,
        epoch=hello.epoch,
        task=hello.task,
        attempt=hello.retry,
        attempt_number=hello.attempt,
        started_ms=missing.started_ms,
        ended_ms=missing.ended_ms,
        outcome=OUTCOME_LOST,
    )
    return attempt.to_row(missing.receipt, {})

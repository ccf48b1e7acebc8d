"""What a converter calls to evaluate the query of a connector on records (`engine.spark.query`).

Plain values only: this package knows no Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from sparkmirror.wire.batch.records import Record


class RecordRow(NamedTuple):
    """A record as a row, with what its batch says about its time."""

    record: Record
    timestamp_type: int
    """0 for CreateTime, 1 for LogAppendTime."""


class RoutedRecord(NamedTuple):
    """A record of a query that computes `topic`."""

    record: Record
    topic: str | None
    """What the query gives; None for null."""


@dataclass(frozen=True, slots=True)
class FailedRow:
    """A row on which an expression failed, with the class and the message of Spark's error."""

    error_class: str
    message: str


RowOutcome: TypeAlias = Record | RoutedRecord | FailedRow | None
"""The record that the query gives, with a topic if it computes one; the failure; or None for a row
that its WHERE leaves out."""


class RecordEvaluator(Protocol):
    """A query that is ready to be evaluated. One thread uses it."""

    @property
    def routes_records(self) -> bool:
        """Whether the query computes `topic`: every record that it keeps is a RoutedRecord."""
        ...

    def evaluate(
        self, topic: str, partition: int, rows: Sequence[RecordRow], *, stops_at_failure: bool
    ) -> Sequence[RowOutcome]:
        """Return one outcome for each row, in order. Blocks.

        With `stops_at_failure` outcomes may end with the first failure. The outcome of a row
        depends on the row alone. Raises DriverLost if Spark does not answer.
        """
        ...

"""An evaluator of records without Spark, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sparkmirror.copy.settings import CopySettings
from sparkmirror.copy.task.batch_converter import BatchConverter
from sparkmirror.copy.task.transform.converter_factory import ConverterFactory
from sparkmirror.copy.task.transform.record_evaluator import (
    FailedRow,
    RecordRow,
    RoutedRecord,
    RowOutcome,
)
from sparkmirror.wire.batch.records import Record
from sparkmirror.wire.batch.target_limits import TargetLimits
from tests.support.copy.pending_batches import make_lease

QUERY = {"sparkmirror.transform.sql": "SELECT * FROM records"}
BAD = b"bad"
"""A value that the evaluator fails on."""


@dataclass(slots=True)
class UppercaseEvaluator:
    """Drops records with the header `drop`, fails on the value `bad`, makes others uppercase."""

    calls: list[list[RecordRow]] = field(default_factory=list)
    routes_records: bool = False

    def evaluate(
        self, topic: str, partition: int, rows: Sequence[RecordRow], *, stops_at_failure: bool
    ) -> list[RowOutcome]:
        assert rows, "nothing to evaluate"
        self.calls.append(list(rows))
        outcomes = [uppercase(row.record) for row in rows]
        failed = [index for index, one in enumerate(outcomes) if isinstance(one, FailedRow)]
        return outcomes[: failed[0] + 1] if failed and stops_at_failure else outcomes


NULL_TOPIC = b"null"
"""A key for which `KeyAsTopicEvaluator` gives null."""


@dataclass(frozen=True, slots=True)
class KeyAsTopicEvaluator:
    """Computes `topic`: the key, or the topic as it was for records without a key."""

    routes_records: bool = True

    def evaluate(
        self, topic: str, partition: int, rows: Sequence[RecordRow], *, stops_at_failure: bool
    ) -> list[RowOutcome]:
        return [RoutedRecord(row.record, _key_as_topic(row.record, topic)) for row in rows]


def _key_as_topic(record: Record, topic: str) -> str | None:
    if record.key == NULL_TOPIC:
        return None
    return topic if record.key is None else record.key.decode()


def uppercase(record: Record) -> RowOutcome:
    """What becomes of a record."""
    if any(name == b"drop" for name, _ in record.headers):
        return None
    if record.value == BAD:
        return FailedRow("org.apache.spark.SparkException", "bad value")
    return record._replace(value=record.value and record.value.upper())


def query_converter(
    evaluator: UppercaseEvaluator, limits: TargetLimits | None = None, tolerance: str = "none"
) -> BatchConverter:
    """Return the converter of a task whose connector has a query."""
    settings = CopySettings(transforms={**QUERY, "errors.tolerance": tolerance})
    factory = ConverterFactory.for_settings(settings, lambda _: evaluator)
    lease = replace(make_lease(), chain=settings.chain)
    return factory.new_converter(lease, limits or TargetLimits(), {})

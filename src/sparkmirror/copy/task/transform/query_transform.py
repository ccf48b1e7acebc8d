"""Passes records of one partition through the query of a connector. Pure.

Rows are never removed on their way: a row that the query leaves out has an outcome too. So every
source offset is kept, filtered, skipped or refused, as with transformations. If the query computes
`topic`, records go to the topics that it names; one that is not known yet must be created first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from sparkmirror.copy.task.batch_converter import UncopyableRecord
from sparkmirror.copy.task.transform.batch_transform import (
    RecordOutcomes,
    RecordRoutes,
    refused_record,
)
from sparkmirror.copy.task.transform.query_topics import QueryTopics
from sparkmirror.copy.task.transform.record_evaluator import (
    FailedRow,
    RecordEvaluator,
    RecordRow,
    RoutedRecord,
    RowOutcome,
)
from sparkmirror.errors import TransformError
from sparkmirror.transforms.record_transformer import NO_TIMESTAMP, ErrorStage, FailedRecord
from sparkmirror.wire.batch.records import Record
from sparkmirror.wire.batch.rewrite import RewrittenRecord, encode_content

CREATE_TIME = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryTransform:
    """A query for the records of one partition."""

    evaluator: RecordEvaluator
    topic: str
    """The name that the replication policy gives the remote topic."""
    partition: int
    tolerates_errors: bool = False
    topics: QueryTopics
    routes: RecordRoutes | None = None
    """Where records may go; None if all go to the remote topic."""

    def apply(self, records: Iterable[Record]) -> RecordOutcomes:
        """Return the outcomes of records, up to the first one that is refused."""
        rows = [RecordRow(record, CREATE_TIME) for record in records]
        return next(self.apply_to_batches([rows]))

    def apply_to_batches(self, batches: Sequence[Sequence[RecordRow]]) -> Iterator[RecordOutcomes]:
        """Yield the outcomes of each batch; evaluates all of them at once.

        A batch whose outcomes have a refused record is the last one.
        """
        rows = [row for batch in batches for row in batch]
        outcomes: Iterator[RowOutcome] = iter(())
        if rows:
            outcomes = iter(
                self.evaluator.evaluate(
                    self.topic, self.partition, rows, stops_at_failure=not self.tolerates_errors
                )
            )
        for batch in batches:
            collected = self._outcomes(batch, islice(outcomes, len(batch)))
            yield collected
            if collected.refused:
                return

    def _outcomes(
        self, rows: Sequence[RecordRow], outcomes: Iterable[RowOutcome]
    ) -> RecordOutcomes:
        collected = RecordOutcomes()
        # Behind a failure there may be fewer outcomes than rows.
        for (record, _), outcome in zip(rows, outcomes, strict=False):
            collected.refused = self._collect(collected, record.offset, outcome)
            if collected.refused:
                break
        return collected

    def _collect(
        self, collected: RecordOutcomes, offset: int, outcome: RowOutcome
    ) -> UncopyableRecord | None:
        """Add the outcome of a row; return the record if it is refused."""
        given = query_record(outcome, self.topics)
        if given is None:
            collected.filtered.append(offset)
        elif isinstance(given, FailedRecord):
            if not self.tolerates_errors:
                return refused_record(offset, given)
            collected.skipped.append(offset)
            collected.errors.append(given)
        else:
            return self._keep(collected, offset, given)
        return None

    def _keep(
        self, collected: RecordOutcomes, offset: int, given: QueryRecord
    ) -> UncopyableRecord | None:
        kept, record = collected.kept, given.record
        if self.routes and given.topic is not None and given.topic != self.routes.remote_topic:
            if refusal := self.routes.refusal(given.topic, offset):
                return refusal
            kept = collected.routed.setdefault(given.topic, [])
        content = encode_content(record.key, record.value, record.headers)
        kept.append(RewrittenRecord(offset, record.timestamp, content))
        return None


class QueryRecord(NamedTuple):
    """A record that a query keeps."""

    record: Record
    topic: str | None = None
    """The topic that it goes to; None for the remote topic, if the query computes none."""


def query_record(outcome: RowOutcome, topics: QueryTopics) -> QueryRecord | FailedRecord | None:
    """The record that a query gives; None if it leaves the row out.

    It fails if the query fails, and for a time or a topic with which no producer sends a record.
    """
    if outcome is None:
        return None
    if isinstance(outcome, FailedRow):
        error = TransformError(outcome.error_class, outcome.message)
        return FailedRecord(ErrorStage.TRANSFORMATION, error)
    if not isinstance(outcome, RoutedRecord):
        return _failed_time(outcome) or QueryRecord(outcome)
    topic = topics.find(outcome.topic)
    if isinstance(topic, FailedRecord):
        return topic
    return _failed_time(outcome.record) or QueryRecord(outcome.record, topic)


def _failed_time(record: Record) -> FailedRecord | None:
    if record.timestamp >= NO_TIMESTAMP:
        return None
    error = TransformError(
        "org.apache.kafka.common.InvalidRecordException",
        f"Invalid record timestamp {record.timestamp}",
    )
    return FailedRecord(ErrorStage.TRANSFORMATION, error)

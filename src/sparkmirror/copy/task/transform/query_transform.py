"""Passes records of one partition through the query of a connector. Pure.

Rows are never removed on their way: a row that the query leaves out has an outcome too. So every
source offset is kept, filtered, skipped or refused, as with transformations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from sparkmirror.copy.task.transform.batch_transform import RecordOutcomes, refused_record
from sparkmirror.copy.task.transform.record_evaluator import (
    FailedRow,
    RecordEvaluator,
    RecordRow,
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
            offset = record.offset
            failed = failed_record(outcome)
            if failed:
                if not self.tolerates_errors:
                    collected.refused = refused_record(offset, failed)
                    break
                collected.skipped.append(offset)
                collected.errors.append(failed)
            elif isinstance(outcome, Record):
                content = encode_content(outcome.key, outcome.value, outcome.headers)
                collected.kept.append(RewrittenRecord(offset, outcome.timestamp, content))
            else:
                collected.filtered.append(offset)
        return collected


def failed_record(outcome: RowOutcome) -> FailedRecord | None:
    """The failure of a row; also if the query gives a time that no producer sends."""
    if isinstance(outcome, FailedRow):
        error = TransformError(outcome.error_class, outcome.message)
        return FailedRecord(ErrorStage.TRANSFORMATION, error)
    if outcome is None or outcome.timestamp >= NO_TIMESTAMP:
        return None
    error = TransformError(
        "org.apache.kafka.common.InvalidRecordException",
        f"Invalid record timestamp {outcome.timestamp}",
    )
    return FailedRecord(ErrorStage.TRANSFORMATION, error)

"""Evaluates a compiled query on records (`copy.task.transform.record_evaluator`).

A row that a mark leaves out is not evaluated further, as in SQL: a column may fail on rows that the
condition excludes. If a stage fails on a row, the others are evaluated without it. The first rows
of a stage that fail are evaluated once more alone, for Spark's message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from sparkmirror.copy.task.transform.record_evaluator import (
    FailedRow,
    RecordRow,
    RoutedRecord,
    RowOutcome,
)
from sparkmirror.engine.spark.error_summary import text_summary
from sparkmirror.engine.spark.query import record_columns
from sparkmirror.engine.spark.query.compiled_query import (
    INPUT,
    ColumnSource,
    CompiledQuery,
    QueryStage,
)
from sparkmirror.engine.spark.query.plan_checks import TOPIC
from sparkmirror.engine.spark.query.record_columns import ArrowArray, pa
from sparkmirror.errors import DriverLost
from sparkmirror.wire.batch.records import Record

MAX_MESSAGE: Final = 300
MAX_MESSAGES: Final = 20
"""How many failed rows of a batch have Spark's message: each is evaluated once more for it."""
_LATER_FAILURE: Final = FailedRow("org.apache.spark.SparkException", "the query fails on it")
_JAVA_ERRORS: Final = "java.lang."


@dataclass(frozen=True, slots=True)
class QueryEvaluator:
    """A RecordEvaluator over the JVM. One thread uses it."""

    query: CompiledQuery

    @property
    def routes_records(self) -> bool:
        """Whether the query computes `topic`."""
        return self.query.computes_topic

    def evaluate(
        self, topic: str, partition: int, rows: Sequence[RecordRow], *, stops_at_failure: bool
    ) -> Sequence[RowOutcome]:
        """Return one outcome for each row. Raises DriverLost if the JVM does not answer."""
        del stops_at_failure  # all rows together cost less than a second call
        batch = _RowBatch(topic, partition, list(rows), list(range(len(rows))))
        outcomes: list[RowOutcome] = [None] * len(rows)
        for number, stage in enumerate(self.query.stages):
            if batch.rows:
                for index, failure in batch.run(number, stage).items():
                    outcomes[index] = failure
        if not batch.rows:
            return outcomes
        records = self._records(batch)
        given: Sequence[RowOutcome] = records
        if self.routes_records:
            topics = record_columns.to_texts(batch.column(self.query.output[TOPIC]))
            given = list(map(RoutedRecord, records, topics))
        for index, outcome in zip(batch.indexes, given, strict=True):
            outcomes[index] = outcome
        return outcomes

    def _records(self, batch: _RowBatch) -> list[Record]:
        """The records that are left, with the parts that the query gives them."""
        output, records = self.query.output, [row.record for row in batch.rows]
        columns: dict[str, list[Any]] = {}
        for name, convert in (
            ("key", record_columns.to_bytes),
            ("value", record_columns.to_bytes),
            ("headers", record_columns.to_headers),
            ("timestamp", record_columns.to_timestamps),
        ):
            source = output[name]
            if source != ColumnSource(INPUT, name):
                columns[name] = list(convert(batch.column(source)))
        if not columns:
            return list(records)
        names = list(columns)
        return [
            record._replace(**dict(zip(names, parts, strict=True)))
            for record, parts in zip(records, zip(*columns.values(), strict=True), strict=True)
        ]


@dataclass(slots=True)
class _RowBatch:
    """The rows that are left, and the columns that are known of them."""

    topic: str
    partition: int
    rows: list[RecordRow]
    indexes: list[int]
    """Where each row was at the beginning."""
    _columns: dict[ColumnSource, ArrowArray] = field(default_factory=dict)

    def column(self, source: ColumnSource) -> ArrowArray:
        """A column of the rows that are left."""
        if source not in self._columns:
            assert source.stage == INPUT, "a stage has given its columns before"
            self._columns[source] = record_columns.to_arrow(
                source.name, self.topic, self.partition, self.rows
            )
        return self._columns[source]

    def run(self, number: int, stage: QueryStage) -> dict[int, FailedRow]:
        """Evaluate a stage; returns the failures by the index of their row."""
        inputs = [self.column(source) for source in stage.inputs]
        failures: dict[int, FailedRow] = {}
        try:
            results = stage.projection.evaluate(inputs)
        except (Py4JError, PySparkException) as error:
            failed_row(error)  # raises unless the row is to blame
            results, valid = _try_evaluate(stage, inputs)
            failed = [index for index, is_valid in enumerate(valid.to_pylist()) if not is_valid]
            if failed:
                failures = {self.indexes[index]: _LATER_FAILURE for index in failed}
                for index in failed[:MAX_MESSAGES]:
                    alone = [column.slice(index, 1) for column in inputs]
                    failures[self.indexes[index]] = _failure_of(stage, alone)
            self._keep(valid)
        if stage.is_mark:
            self._keep(pa.compute.fill_null(results[0], False))
        else:
            for index, column in enumerate(results):
                self._columns[ColumnSource(number, str(index))] = column
        return failures

    def _keep(self, mask: ArrowArray) -> None:
        """Go on with the rows that the mask has."""
        kept = mask.to_pylist()
        if all(kept):
            return
        self.rows = [row for row, is_kept in zip(self.rows, kept, strict=True) if is_kept]
        self.indexes = [one for one, is_kept in zip(self.indexes, kept, strict=True) if is_kept]
        self._columns = {source: one.filter(mask) for source, one in self._columns.items()}


def _try_evaluate(
    stage: QueryStage, inputs: Sequence[ArrowArray]
) -> tuple[list[ArrowArray], ArrowArray]:
    try:
        return stage.projection.try_evaluate(inputs)
    except (Py4JError, PySparkException) as error:
        failed = failed_row(error)
        raise DriverLost(f"Spark cannot evaluate the query: {failed.message}") from error


def _failure_of(stage: QueryStage, row: Sequence[ArrowArray]) -> FailedRow:
    """Spark's error for a row that fails."""
    try:
        stage.projection.evaluate(row)
    except (Py4JError, PySparkException) as error:
        return failed_row(error)
    return _LATER_FAILURE


def failed_row(error: Exception) -> FailedRow:
    """Spark's error as that of a row. Raises DriverLost for errors of the JVM itself."""
    origin: Any = error.java_exception if isinstance(error, Py4JJavaError) else None
    if isinstance(error, PySparkException):
        origin = getattr(error, "_origin", None)
    if origin is None and isinstance(error, Py4JError):
        raise DriverLost(f"Spark does not answer: {error}") from error
    name = type(error).__name__ if origin is None else str(origin.getClass().getName())
    text = str(error) if origin is None else str(origin.getMessage())
    first = text_summary(text)
    if name.startswith(_JAVA_ERRORS) and name.endswith("Error"):
        raise DriverLost(f"Spark cannot evaluate the query: {name}: {first}") from error
    return FailedRow(name, first if len(first) <= MAX_MESSAGE else f"{first[:MAX_MESSAGE]}...")

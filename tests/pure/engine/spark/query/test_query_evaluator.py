"""The outcomes of rows after the stages of a query, with other functions in Spark's place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest
from pyspark.errors import PySparkException

from sparkmirror.copy.task.transform.record_evaluator import FailedRow, RecordRow
from sparkmirror.engine.spark.query.compiled_query import (
    INPUT,
    ColumnSource,
    CompiledQuery,
    QueryStage,
)
from sparkmirror.engine.spark.query.jvm_projection import JvmProjection
from sparkmirror.engine.spark.query.query_evaluator import QueryEvaluator, failed_row
from sparkmirror.engine.spark.query.record_columns import ArrowArray, pa
from sparkmirror.errors import DriverLost
from sparkmirror.wire.batch.records import Record

KEY, VALUE, HEADERS = (ColumnSource(INPUT, name) for name in ("key", "value", "headers"))
UNCHANGED = {name: ColumnSource(INPUT, name) for name in ("key", "value", "headers", "timestamp")}
FIRST, SECOND = ColumnSource(0, "0"), ColumnSource(1, "0")


class PythonProjection:
    """A function of one cell; a cell on which it raises ValueError fails."""

    def __init__(self, function: Callable[[Any], object], data_type: object) -> None:
        self._function, self._type = function, data_type
        self.calls: list[int] = []

    def evaluate(self, columns: Sequence[ArrowArray]) -> list[ArrowArray]:
        self.calls.append(len(columns[0]))
        try:
            return [pa.array(map(self._function, columns[0].to_pylist()), self._type)]
        except ValueError as error:
            raise PySparkException(f"{error}\n== SQL ==\n...") from error

    def try_evaluate(self, columns: Sequence[ArrowArray]) -> tuple[list[ArrowArray], ArrowArray]:
        cells = columns[0].to_pylist()
        valid = [self._is_valid(cell) for cell in cells]
        kept = [
            self._function(cell) for cell, is_valid in zip(cells, valid, strict=True) if is_valid
        ]
        return [pa.array(kept, self._type)], pa.array(valid)

    def _is_valid(self, cell: object) -> bool:
        try:
            self._function(cell)
        except ValueError:
            return False
        return True


def stage(
    source: ColumnSource, function: Callable[[Any], object], data_type: object = None
) -> QueryStage:
    """A stage of one column; a mark without a type."""
    projection = PythonProjection(function, data_type or pa.bool_())
    return QueryStage(cast(JvmProjection, projection), (source,), is_mark=data_type is None)


def evaluate(
    stages: Sequence[QueryStage], output: dict[str, ColumnSource], *values: bytes | None
) -> list[object]:
    evaluator = QueryEvaluator(CompiledQuery(tuple(stages), UNCHANGED | output))
    rows = [RecordRow(Record(n, 5, b"k", value), 0) for n, value in enumerate(values)]
    outcomes = evaluator.evaluate("A.t", 0, rows, stops_at_failure=False)
    return [one.value if isinstance(one, Record) else one for one in outcomes]


def number(cell: bytes) -> int:
    return int(cell)


def test_a_row_that_a_mark_leaves_out_or_does_not_know_is_dropped() -> None:
    marks = [stage(VALUE, {b"a": True, b"b": False, b"c": None}.get)]
    assert evaluate(marks, {}, b"a", b"b", b"c", b"a") == [b"a", None, None, b"a"]


def test_columns_are_computed_for_the_rows_that_are_left() -> None:
    upper = stage(VALUE, bytes.upper, pa.binary())
    stages = [stage(VALUE, lambda cell: cell != b"b"), upper]
    assert evaluate(stages, {"value": SECOND}, b"a", b"b", b"c") == [b"A", None, b"C"]
    assert cast(PythonProjection, upper.projection).calls == [2]


def test_a_later_mark_filters_computed_columns_too() -> None:
    stages = [stage(VALUE, bytes.upper, pa.binary()), stage(FIRST, lambda cell: cell > b"A")]
    assert evaluate(stages, {"value": FIRST}, b"a", b"b", b"A", b"c") == [None, b"B", None, b"C"]


def test_rows_that_fail_do_not_hide_the_others_and_the_first_has_the_message() -> None:
    stages = [
        stage(VALUE, lambda cell: cell != b"drop"),
        stage(VALUE, lambda cell: b"%d" % (number(cell) + 1), pa.binary()),
    ]
    first, failed, dropped, other, last = evaluate(
        stages, {"value": SECOND}, b"1", b"x", b"drop", b"y", b"8"
    )
    assert (first, dropped, last) == (b"2", None, b"9")
    assert isinstance(failed, FailedRow)
    assert failed.message == "invalid literal for int() with base 10: b'x'"
    assert isinstance(other, FailedRow)


def test_a_mark_may_fail_too() -> None:
    outcomes = evaluate([stage(VALUE, lambda cell: number(cell) > 1)], {}, b"x", b"2", b"1")
    assert isinstance(outcomes[0], FailedRow)
    assert outcomes[1:] == [b"2", None]


@pytest.mark.parametrize("value", [b"drop", b"x"])
def test_no_row_may_be_left(value: bytes) -> None:
    stages = [
        stage(VALUE, lambda cell: cell != b"drop"),
        stage(VALUE, lambda cell: b"%d" % number(cell), pa.binary()),
        stage(SECOND, bytes.upper, pa.binary()),
    ]
    (outcome,) = evaluate(stages, {"value": ColumnSource(2, "0")}, value)
    assert outcome is None or isinstance(outcome, FailedRow)


def test_headers_key_and_time_may_change_too() -> None:
    stages = [
        stage(VALUE, lambda cell: [("n", cell)], pa.map_(pa.string(), pa.binary())),
        stage(VALUE, lambda cell: 7_000, pa.int64()),
    ]
    output = UNCHANGED | {"headers": FIRST, "timestamp": SECOND, "key": VALUE}
    evaluator = QueryEvaluator(CompiledQuery(tuple(stages), output))
    rows = [RecordRow(Record(3, 5, None, b"v"), 0)]
    assert evaluator.evaluate("A.t", 0, rows, stops_at_failure=True) == [
        Record(3, 7, b"v", b"v", ((b"n", b"v"),))
    ]


class JavaError(PySparkException):
    """An error with the Java object that pyspark keeps."""

    def __init__(self, name: str) -> None:
        super().__init__("message")
        self._origin = _JavaThrowable(name)


class _JavaThrowable:
    def __init__(self, name: str) -> None:
        self._name = name

    def getClass(self) -> _JavaThrowable:  # noqa: N802 - the name is Java's
        return self

    def getName(self) -> str:  # noqa: N802
        return self._name

    def getMessage(self) -> str:  # noqa: N802
        return "x" * 1000


def test_the_error_of_a_row_has_javas_class_and_a_bounded_message() -> None:
    failed = failed_row(JavaError("org.apache.spark.SparkNumberFormatException"))
    assert failed.error_class == "org.apache.spark.SparkNumberFormatException"
    assert failed.message == "x" * 300 + "..."


def test_an_error_of_the_jvm_is_no_error_of_a_row() -> None:
    with pytest.raises(DriverLost, match=r"java\.lang\.OutOfMemoryError"):
        failed_row(JavaError("java.lang.OutOfMemoryError"))

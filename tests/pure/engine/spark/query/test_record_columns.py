"""Records as Arrow columns and back."""

from __future__ import annotations

import pytest

from sparkmirror.copy.task.transform.record_evaluator import RecordRow
from sparkmirror.engine.spark.query import record_columns
from sparkmirror.engine.spark.query.record_columns import pa
from sparkmirror.wire.batch.records import Record

ROWS = [
    RecordRow(Record(7, 1_700_000_000_123, b"k", None, ((b"a", b"1"), (b"a", b"2"))), 0),
    RecordRow(Record(9, -1, None, b"\xff", ((b"\xff", None),)), 1),
]


@pytest.mark.parametrize("name", record_columns.COLUMNS)
def test_a_column_has_a_cell_for_each_record(name: str) -> None:
    assert len(record_columns.to_arrow(name, "A.t", 3, ROWS)) == 2
    assert len(record_columns.to_arrow(name, "A.t", 3, [])) == 0


def test_the_cells_are_those_of_the_record() -> None:
    cells = {
        name: record_columns.to_arrow(name, "A.t", 3, ROWS).to_pylist()
        for name in record_columns.COLUMNS
        if name != "timestamp"
    }
    assert cells == {
        "topic": ["A.t", "A.t"],
        "partition": [3, 3],
        "offset": [7, 9],
        "timestamp_type": [0, 1],
        "key": [b"k", None],
        "value": [None, b"\xff"],
        "headers": [[("a", b"2")], [("�", None)]],
    }


def test_times_are_milliseconds_and_none_without_one() -> None:
    column = record_columns.to_arrow("timestamp", "A.t", 3, ROWS)
    assert record_columns.to_timestamps(column) == [1_700_000_000_123, -1]


def test_a_time_beyond_what_spark_has_is_cut() -> None:
    row = RecordRow(Record(1, (1 << 63) - 1, None, None), 0)
    column = record_columns.to_arrow("timestamp", "A.t", 0, [row])
    assert record_columns.to_timestamps(column) == [(1 << 63) // 1000 - 1]


def test_text_is_written_as_utf_8() -> None:
    column = pa.array(["ä", None], pa.string())
    assert record_columns.to_bytes(column) == ["ä".encode(), None]
    assert record_columns.to_bytes(pa.array([b"\xff"], pa.binary())) == [b"\xff"]
    assert record_columns.to_bytes(pa.nulls(2)) == [None, None]


def test_bytes_that_are_no_text_get_replacement_characters() -> None:
    cast = pa.array([b"a", b"\xff", None], pa.binary()).view(pa.string())
    assert record_columns.to_texts(cast) == ["a", "\ufffd", None]
    assert record_columns.to_texts(pa.nulls(2)) == [None, None]


def test_computed_headers_keep_bytes_that_are_no_text() -> None:
    cells = pa.array([[("a", b"\xff")], None], pa.map_(pa.string(), pa.binary()))
    texts = cells.view(pa.map_(pa.string(), pa.string()))
    assert record_columns.to_headers(texts) == [((b"a", b"\xff"),), ()]


def test_headers_are_the_entries_of_a_map() -> None:
    texts = pa.array([[("a", "ä"), ("b", None)], None], pa.map_(pa.string(), pa.string()))
    assert record_columns.to_headers(texts) == [((b"a", "ä".encode()), (b"b", None)), ()]
    assert record_columns.to_headers(pa.nulls(1)) == [()]

"""Log lines know their connector and task."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import pytest

from sparkmirror import logs
from sparkmirror.logs import MAX_LINES, QUIET_S, RepeatedLineFilter, RepeatedLines


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    root = logging.getLogger()
    level = root.level
    handler = logs.install(stream)
    yield stream
    root.removeHandler(handler)
    root.setLevel(level)


def test_a_line_carries_connector_task_and_scope(lines: io.StringIO) -> None:
    with logs.context(connector="mm2-msc", task=0, scope="offsets"):
        logging.getLogger("somewhere").info("moved %d records", 3)
    assert "INFO [mm2-msc|task-0|offsets] moved 3 records (somewhere:" in lines.getvalue()


def test_the_prefix_ends_with_its_block(lines: io.StringIO) -> None:
    with logs.context(connector="outer"), logs.context(connector="inner", task=1):
        pass
    logging.getLogger("somewhere").info("alone")
    assert "INFO alone" in lines.getvalue()


def test_a_process_of_one_connector_prefixes_the_lines_outside_a_context() -> None:
    record = logging.makeLogRecord({})
    process = logs.ContextFilter(logs.connector_prefix("mm2-msc"))
    assert process.filter(record)
    assert vars(record)["context"] == "[mm2-msc] "
    with logs.context(connector="mm2-msc", task=1):
        assert process.filter(record)
    assert vars(record)["context"] == "[mm2-msc|task-1] "


def test_levels_are_set_by_logger_and_root_is_the_root_logger(lines: io.StringIO) -> None:
    logs.set_levels({"root": logging.ERROR, "somewhere.else": logging.DEBUG})
    logging.getLogger("somewhere").warning("below the level of root")
    logging.getLogger("somewhere.else").debug("at its own level")
    logs.set_levels({"somewhere.else": logging.NOTSET})
    assert "below the level of root" not in lines.getvalue()
    assert "DEBUG at its own level" in lines.getvalue()


def test_line_that_repeats_ten_times_a_second_is_written_at_growing_intervals() -> None:
    lines = RepeatedLines()
    written = {tick / 10: lines.add("refused", tick / 10) for tick in range(3000)}
    shown = {at: dropped for at, dropped in written.items() if dropped is not None}
    assert shown == {0.0: 0, 10.0: 99, 40.0: 299, 130.0: 899}


def test_line_that_was_quiet_for_long_is_written_at_once() -> None:
    lines = RepeatedLines()
    assert [lines.add("refused", at) for at in (0, 1, 2)] == [0, None, None]
    assert lines.add("refused", 2 + QUIET_S) == 2
    assert lines.add("refused", 3 + QUIET_S) is None


def test_lines_are_counted_apart_and_only_so_many_are_remembered() -> None:
    lines = RepeatedLines()
    assert [lines.add(number, 0.0) for number in range(MAX_LINES + 1)] == [0] * (MAX_LINES + 1)
    assert lines.add(0, 1.0) == 0, "the oldest was forgotten"
    assert lines.add(MAX_LINES, 1.0) is None


def test_warnings_are_filtered_by_logger_context_and_text_and_infos_never() -> None:
    now = 0.0
    repeats = RepeatedLineFilter(lambda: now)

    def passes(text: str, level: int = logging.WARNING, name: str = "a") -> str | None:
        record = logging.LogRecord(name, level, "", 1, "lost %s", (text,), None)
        return record.__dict__["repeats"] if repeats.filter(record) else None

    assert passes("x") == ""
    assert passes("x") is None
    assert (passes("y"), passes("x", logging.ERROR), passes("x", name="b")) == ("", "", "")
    with logs.context(connector="c"):
        assert passes("x") == ""
    assert [passes("z", logging.INFO) for _ in range(3)] == [""] * 3
    now = 11.0
    assert passes("x") == " (and once more since it was last logged)"


def test_count_is_part_of_the_line(lines: io.StringIO) -> None:
    for _ in range(3):
        logging.getLogger("somewhere").warning("lost %s", "x")
    assert lines.getvalue().count("WARNING lost x (somewhere:") == 1


def test_line_that_cannot_be_formatted_does_not_fail_the_caller() -> None:
    record = logging.LogRecord("a", logging.WARNING, "", 1, "lost %d", ("x",), None)
    assert RepeatedLineFilter().filter(record)

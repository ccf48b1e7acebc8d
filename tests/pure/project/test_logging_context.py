"""Log lines know their connector and task."""

from __future__ import annotations

import ast
import io
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror import logging_context
from sparkmirror.logging_context import MAX_LINES, QUIET_S, RepeatedLineFilter, RepeatedLines


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    root = logging.getLogger()
    level = root.level
    handler = logging_context.install(stream)
    yield stream
    root.removeHandler(handler)
    root.setLevel(level)


def test_a_line_carries_connector_task_and_scope(lines: io.StringIO) -> None:
    with logging_context.context(connector="mm2-msc", task=0, scope="offsets"):
        logging.getLogger("somewhere").info("moved %d records", 3)
    assert "INFO [mm2-msc|task-0|offsets] moved 3 records (somewhere:" in lines.getvalue()


def test_the_prefix_ends_with_its_block(lines: io.StringIO) -> None:
    with (
        logging_context.context(connector="outer"),
        logging_context.context(connector="inner", task=1),
    ):
        pass
    logging.getLogger("somewhere").info("alone")
    assert "INFO alone" in lines.getvalue()


def test_a_process_with_several_flows_names_the_flow_of_each_line(lines: io.StringIO) -> None:
    log = logging.getLogger("somewhere")
    with logging_context.flow_context("A->B"):
        log.info("of the flow")
        with logging_context.context(connector="MirrorSourceConnector", task=1):
            log.info("of its task")
        log.info("of the flow again")
    log.info("of the process")
    written = lines.getvalue()
    assert "INFO [A->B] of the flow (" in written
    assert "INFO [A->B.MirrorSourceConnector|task-1] of its task (" in written
    assert "INFO [A->B] of the flow again (" in written
    assert "INFO of the process (" in written


def test_a_thread_has_the_prefix_of_the_code_that_starts_it(lines: io.StringIO) -> None:
    def run(text: str) -> None:
        logging.getLogger("somewhere").info(text)
        inner = logging_context.ContextThread(
            target=logging.getLogger("somewhere").info, name="inner", args=["inside"]
        )
        inner.start()
        inner.join(50)

    thread = logging_context.ContextThread(target=run, name="outer", args=["outside"])
    with logging_context.context(connector="A->B.c"):
        thread.start()
    thread.join(50)
    assert "INFO [A->B.c] outside (" in lines.getvalue()
    assert "INFO [A->B.c] inside (" in lines.getvalue()


THREADS_OF_ALL_CONNECTORS = {
    "engine/driver/control/control_server.py": "serves the tasks of all connectors",
    "engine/driver/driver.py": "closes Spark",
    "engine/driver/driver_main.py": "reads commands for all connectors",
    "engine/driver/queries/executor_query_main.py": "no driver: waits for the end of a slot",
    "engine/driver/topic_readers/shared_topic_reader.py": "reads the offsets of all connectors",
    "engine/driver/spark_application.py": "runs Spark",
}
"""Modules of a driver whose threads log about no connector, or name it in the line."""


def test_every_thread_of_a_driver_that_serves_one_connector_names_it_in_its_log_lines() -> None:
    """One log has the lines of all connectors of a worker: each must make sense alone."""
    root = Path(logging_context.__file__).parent
    modules = [*root.glob("copy/*.py"), *root.glob("copy/driver/**/*.py")]
    modules += [*root.glob("engine/driver/**/*.py"), *root.glob("store/*.py")]
    plain = {
        str(path.relative_to(root))
        for path in modules
        if re.search(r"\bthreading\.Thread\(", path.read_text())
    }
    assert len(modules) > 50
    assert plain == THREADS_OF_ALL_CONNECTORS.keys()


def test_lines_of_threads_that_serve_all_connectors_name_the_connector_they_speak_of() -> None:
    """Such a line has no prefix. So its text has a job, or nothing that belongs to one."""
    root = Path(logging_context.__file__).parent
    of_one_connector = re.compile(r"\b([Tt]ask|[Pp]artition|[Cc]onnector)s? %")
    for module in THREADS_OF_ALL_CONNECTORS:
        for line in log_texts(root / module):
            assert not of_one_connector.search(line) or "of %s" in line, f"{module}: {line}"


def log_texts(module: Path) -> Iterator[str]:
    """The texts of all log lines of a module."""
    for node in ast.walk(ast.parse(module.read_text())):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "log"
        ):
            text = node.args[0]
            assert isinstance(text, ast.Constant), f"{module}: line {node.lineno}"
            yield str(text.value)


def test_levels_are_set_by_logger_and_root_is_the_root_logger(lines: io.StringIO) -> None:
    logging_context.set_levels({"root": logging.ERROR, "somewhere.else": logging.DEBUG})
    logging.getLogger("somewhere").warning("below the level of root")
    logging.getLogger("somewhere.else").debug("at its own level")
    logging_context.set_levels({"somewhere.else": logging.NOTSET})
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
    with logging_context.context(connector="c"):
        assert passes("x") == ""
    assert [passes("z", logging.INFO) for _ in range(3)] == [""] * 3
    now = 11.0
    assert passes("x") == " (and once more since it was last logged)"


def test_count_is_part_of_the_line(lines: io.StringIO) -> None:
    for _ in range(3):
        logging.getLogger("somewhere").warning("lost %s", "x")
    assert lines.getvalue().count("WARN lost x (somewhere:") == 1


def test_line_that_cannot_be_formatted_does_not_fail_the_caller() -> None:
    record = logging.LogRecord("a", logging.WARNING, "", 1, "lost %d", ("x",), None)
    assert RepeatedLineFilter().filter(record)

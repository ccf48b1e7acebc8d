"""Log lines know their connector and task."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import pytest

from sparkmirror import logs


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


def test_levels_are_set_by_logger_and_root_is_the_root_logger(lines: io.StringIO) -> None:
    logs.set_levels({"root": logging.ERROR, "somewhere.else": logging.DEBUG})
    logging.getLogger("somewhere").warning("below the level of root")
    logging.getLogger("somewhere.else").debug("at its own level")
    logs.set_levels({"somewhere.else": logging.NOTSET})
    assert "below the level of root" not in lines.getvalue()
    assert "DEBUG at its own level" in lines.getvalue()

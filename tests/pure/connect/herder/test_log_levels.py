"""Log levels with Connect's names, set on Python's loggers."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

import sparkmirror
from sparkmirror.connect.herder.herder import LoggerLevel
from sparkmirror.connect.herder.log_levels import PYTHON_LOGGERS, LogLevels
from sparkmirror.errors import NotFound
from tests.support.connect.in_memory_herder import WORKER_SETTINGS, running_herder


def manager() -> logging.Manager:
    return logging.Manager(logging.RootLogger(logging.INFO))


def test_a_java_name_sets_the_python_loggers_of_the_same_part() -> None:
    loggers = manager()
    levels = LogLevels(loggers, clock_ms=lambda: 7)
    assert levels.set_level("org.apache.kafka.connect.storage", "debug") == [
        "org.apache.kafka.connect.storage"
    ]
    assert (
        loggers.getLogger("sparkmirror.store.config_backing_store").getEffectiveLevel()
        == logging.DEBUG
    )
    assert loggers.getLogger("sparkmirror.rest").getEffectiveLevel() == logging.INFO
    assert levels.level("org.apache.kafka.connect.storage") == LoggerLevel(
        level="DEBUG", last_modified_ms=7
    )


def test_levels_of_the_start_count_below_their_names_and_the_longest_name_wins() -> None:
    loggers = manager()
    known = {
        "org.apache.kafka.connect.mirror": "DEBUG",
        "root": "ERROR",
        "org.apache.kafka": "WARN",
    }
    levels = LogLevels(loggers, known=known)
    for name, level in {
        "sparkmirror.copy.task": logging.DEBUG,
        "sparkmirror.store.config_backing_store": logging.WARNING,
        "sparkmirror.rest.server": logging.WARNING,
        "sparkmirror.cli.worker": logging.ERROR,
    }.items():
        assert loggers.getLogger(name).getEffectiveLevel() == level, name
    assert levels.level("org.apache.kafka.clients").level == "WARN"
    passed: list[Mapping[str, int]] = []
    levels.add_listener(passed.append)
    assert passed[0]["root"] == logging.ERROR
    assert passed[0]["sparkmirror.copy"] == logging.DEBUG


def modules_with_loggers() -> set[str]:
    """The names of all loggers that modules of sparkmirror define."""
    package = Path(sparkmirror.__file__).parent
    return {
        ".".join(("sparkmirror", *path.relative_to(package).with_suffix("").parts))
        for path in package.rglob("*.py")
        if re.search(r"^log\w* = logging\.getLogger\(__name__\)", path.read_text(), re.MULTILINE)
    }


@pytest.mark.parametrize("java_name", PYTHON_LOGGERS)
def test_every_logger_behind_a_java_name_belongs_to_modules_that_log(java_name: str) -> None:
    defined = modules_with_loggers()
    for prefix in PYTHON_LOGGERS[java_name]:
        assert any(f"{name}.".startswith(f"{prefix}.") for name in defined), prefix


def test_the_herders_java_name_reaches_the_modules_that_log_for_the_herder() -> None:
    loggers = manager()
    LogLevels(loggers).set_level("org.apache.kafka.connect.runtime.distributed", "DEBUG")
    herder, runtime = "sparkmirror.connect.herder", "sparkmirror.connect.runtime"
    expected = {
        f"{herder}.herder_lifecycle",
        f"{herder}.config_update_listener",
        f"{runtime}.threads.herder_thread",
        f"{runtime}.worker_connectors",
        f"{runtime}.worker_connector",
        f"{runtime}.worker_tasks",
        f"{runtime}.threads.graceful_shutdown_timeout",
    }
    assert expected <= modules_with_loggers()
    for name in expected:
        assert loggers.getLogger(name).isEnabledFor(logging.DEBUG)


def test_a_level_reaches_every_known_name_below() -> None:
    loggers = manager()
    levels = LogLevels(loggers)
    changed = levels.set_level("org.apache.kafka", "ERROR")
    assert "org.apache.kafka.connect.runtime.rest" in changed
    assert levels.level("org.apache.kafka.clients").level == "ERROR"
    for name in (
        "sparkmirror.rest",
        "sparkmirror.engine.spark.streaming_query",
        "sparkmirror.wire",
    ):
        assert loggers.getLogger(name).getEffectiveLevel() == logging.ERROR


def test_root_sets_all_loggers() -> None:
    loggers = manager()
    levels = LogLevels(loggers)
    levels.set_level("org.example", "TRACE")
    assert "org.example" in levels.set_level("root", "WARN")
    assert loggers.root.level == logging.WARNING
    assert {level.level for level in levels.all_levels().values()} == {"WARN"}
    assert levels.set_level("root", "WARN") == []


def test_python_logger_names_are_accepted_too() -> None:
    loggers = manager()
    loggers.getLogger("sparkmirror.wire.protocol.fetch")
    levels = LogLevels(loggers)
    assert levels.level("sparkmirror.wire.protocol.fetch") == LoggerLevel(
        level="INFO", last_modified_ms=None
    )
    assert levels.set_level("sparkmirror.wire", "ALL") == [
        "sparkmirror.wire",
        "sparkmirror.wire.protocol",
        "sparkmirror.wire.protocol.fetch",
    ]
    assert loggers.getLogger("sparkmirror.wire.protocol.fetch").isEnabledFor(5)


def test_off_is_quieter_than_fatal() -> None:
    loggers = manager()
    LogLevels(loggers).set_level("org.example", "OFF")
    assert not loggers.getLogger("org.example").isEnabledFor(logging.CRITICAL)


def test_unknown_names_and_levels_are_rejected() -> None:
    levels = LogLevels(manager())
    with pytest.raises(NotFound, match=r"Logger no\.such not found\."):
        levels.level("no.such")
    with pytest.raises(NotFound, match=r"invalid log level 'LOUD'\."):
        levels.set_level("root", "LOUD")


def test_a_level_for_all_workers_is_written_to_the_config_topic() -> None:
    levels = LogLevels(manager())
    with running_herder(WORKER_SETTINGS, log_levels=levels) as harness:
        assert harness.herder.set_logger_level("org.example", "debug", everywhere=True) == ()
        assert harness.herder.logger_level("org.example").level == "DEBUG"
        assert harness.config_log.records[-1].key == b"logger-cluster-org.example"

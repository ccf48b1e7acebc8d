"""Log levels under Connect's names, set on Python's loggers."""

from __future__ import annotations

import logging

import pytest

from sparkmirror.connect.herding import LoggerLevel
from sparkmirror.connect.log_levels import LogLevels
from sparkmirror.errors import NotFound
from tests.support.herders import SETTINGS, herding


def manager() -> logging.Manager:
    return logging.Manager(logging.RootLogger(logging.INFO))


def test_a_name_of_java_sets_the_loggers_that_do_the_same_here() -> None:
    loggers = manager()
    levels = LogLevels(loggers, clock_ms=lambda: 7)
    assert levels.set_level("org.apache.kafka.connect.storage", "debug") == [
        "org.apache.kafka.connect.storage"
    ]
    assert loggers.getLogger("sparkmirror.store.configs").getEffectiveLevel() == logging.DEBUG
    assert loggers.getLogger("sparkmirror.rest").getEffectiveLevel() == logging.INFO
    assert levels.level("org.apache.kafka.connect.storage") == LoggerLevel(
        level="DEBUG", last_modified_ms=7
    )


def test_a_level_reaches_every_known_name_below() -> None:
    loggers = manager()
    levels = LogLevels(loggers)
    changed = levels.set_level("org.apache.kafka", "ERROR")
    assert "org.apache.kafka.connect.runtime.rest" in changed
    assert levels.level("org.apache.kafka.clients").level == "ERROR"
    for name in ("sparkmirror.rest", "sparkmirror.engine.query", "kafka"):
        assert loggers.getLogger(name).getEffectiveLevel() == logging.ERROR


def test_root_is_everything() -> None:
    loggers = manager()
    levels = LogLevels(loggers)
    levels.set_level("org.example", "TRACE")
    assert "org.example" in levels.set_level("root", "WARN")
    assert loggers.root.level == logging.WARNING
    assert {level.level for level in levels.all().values()} == {"WARN"}
    assert levels.set_level("root", "WARN") == []


def test_our_own_names_work_too() -> None:
    loggers = manager()
    loggers.getLogger("sparkmirror.wire.fetch")
    levels = LogLevels(loggers)
    assert levels.level("sparkmirror.wire.fetch") == LoggerLevel(
        level="INFO", last_modified_ms=None
    )
    assert levels.set_level("sparkmirror.wire", "ALL") == [
        "sparkmirror.wire",
        "sparkmirror.wire.fetch",
    ]
    assert loggers.getLogger("sparkmirror.wire.fetch").isEnabledFor(5)


def test_off_is_quieter_than_fatal() -> None:
    loggers = manager()
    LogLevels(loggers).set_level("org.example", "OFF")
    assert not loggers.getLogger("org.example").isEnabledFor(logging.CRITICAL)


def test_unknown_names_and_levels_are_refused() -> None:
    levels = LogLevels(manager())
    with pytest.raises(NotFound, match=r"Logger no\.such not found\."):
        levels.level("no.such")
    with pytest.raises(NotFound, match=r"invalid log level 'LOUD'\."):
        levels.set_level("root", "LOUD")


def test_a_level_for_all_workers_goes_through_the_config_topic() -> None:
    levels = LogLevels(manager())
    with herding(SETTINGS, log_levels=levels) as stage:
        assert stage.herder.set_logger("org.example", "debug", everywhere=True) == ()
        assert stage.herder.logger("org.example").level == "DEBUG"
        assert stage.configs.records[-1].key == b"logger-cluster-org.example"

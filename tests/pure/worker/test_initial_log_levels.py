"""The log levels with which a process starts, from a variable."""

from __future__ import annotations

import pytest

from sparkmirror.worker.initial_log_levels import InitialLogLevels


def initial(text: str) -> InitialLogLevels:
    return InitialLogLevels.of({"SPARKMIRROR_LOG_LEVELS": text})


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("root=DEBUG,org.apache.kafka=WARN", {"root": "DEBUG", "org.apache.kafka": "WARN"}),
        (
            "root = info ,\n org.apache.kafka.connect.mirror=trace,",
            {"root": "INFO", "org.apache.kafka.connect.mirror": "TRACE"},
        ),
        (
            "sparkmirror.store=OFF,sparkmirror=ERROR",
            {"sparkmirror.store": "OFF", "sparkmirror": "ERROR"},
        ),
        ("root=INFO,root=WARN", {"root": "WARN"}),
        ("", {}),
    ],
)
def test_names_and_levels_are_read(text: str, levels: dict[str, str]) -> None:
    assert initial(text) == InitialLogLevels(levels=levels, notices=())


@pytest.mark.parametrize("part", ["root=LOUD", "org.apache.kafka", "root=", "=INFO"])
def test_part_that_cannot_be_read_has_no_effect_and_one_line(part: str) -> None:
    found = initial(f"{part},org.apache.kafka.clients=DEBUG")
    assert found.levels == {"org.apache.kafka.clients": "DEBUG"}
    (notice,) = found.notices
    assert notice == (
        f"SPARKMIRROR_LOG_LEVELS: '{part}' has no effect, write NAME=LEVEL with one of the levels"
        " OFF, FATAL, ERROR, WARN, INFO, DEBUG, TRACE, ALL."
    )


@pytest.mark.parametrize("name", ["org.reflections", "org.apache.kafka.connect.runtime.Worker"])
def test_name_without_loggers_has_one_line(name: str) -> None:
    notice = (
        f"SPARKMIRROR_LOG_LEVELS: {name} has no effect, no logger has this name; "
        "GET /admin/loggers lists them."
    )
    assert initial(f"{name}=ERROR") == InitialLogLevels(
        levels={},
        notices=(notice,),
    )


def test_without_the_variable_nothing_is_set() -> None:
    assert InitialLogLevels.of({}) == InitialLogLevels(levels={}, notices=())

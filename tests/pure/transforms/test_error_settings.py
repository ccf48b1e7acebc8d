"""What a connector does about records that fail, from its config."""

from __future__ import annotations

import pytest

from sparkmirror.errors import ConfigError
from sparkmirror.transforms.configuration.dead_letter_and_query_faults import (
    dead_letter_and_query_faults,
)
from sparkmirror.transforms.configuration.error_settings import DeadLetterTopic, ErrorSettings

QUEUE = "sparkmirror.errors.deadletterqueue"
TOPIC = f"{QUEUE}.topic.name"


def test_by_default_nothing_is_logged_and_there_is_no_topic() -> None:
    assert ErrorSettings.from_config({}) == ErrorSettings()


def test_all_keys_are_read() -> None:
    props = {
        "errors.log.enable": "true",
        "errors.log.include.messages": " TRUE ",
        TOPIC: " dead ",
        f"{QUEUE}.topic.replication.factor": "2",
        f"{QUEUE}.context.headers.enable": "true",
    }
    topic = DeadLetterTopic(name="dead", replication_factor=2, has_context_headers=True)
    assert ErrorSettings.from_config(props) == ErrorSettings(
        logs_errors=True, logs_contents=True, dead_letters=topic
    )


@pytest.mark.parametrize(
    "props",
    [{"errors.log.enable": "maybe"}, {f"{QUEUE}.topic.replication.factor": "0"}],
)
def test_wrong_values_are_faults(props: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        ErrorSettings.from_config(props)


DAYS = {
    "transforms": "days",
    "transforms.days.type": "org.apache.kafka.connect.transforms.TimestampRouter",
}


@pytest.mark.parametrize(
    ("props", "fault"),
    [
        ({TOPIC: "dead", "errors.tolerance": "all", **DAYS}, "not supported with days"),
        ({"errors.tolerance": "all", **DAYS}, ""),
        ({TOPIC: "dead"}, "needs errors.tolerance=all"),
        ({TOPIC: "dead", "errors.tolerance": " all "}, ""),
        ({TOPIC: " "}, ""),
        ({TOPIC: "a/b", "errors.tolerance": "all"}, "is no name of a topic"),
        ({TOPIC: "..", "errors.tolerance": "all"}, "is no name of a topic"),
    ],
)
def test_dead_letters_need_tolerance_and_a_name(props: dict[str, str], fault: str) -> None:
    found = "; ".join(one.message for one in dead_letter_and_query_faults(props))
    assert fault in found
    assert bool(fault) is bool(found)

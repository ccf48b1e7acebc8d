"""Topic settings as brokers of several ages give them."""

from __future__ import annotations

import pytest

from sparkmirror.wire.protocol.topics.topic_log_config import UNLIMITED_MS, TopicLogConfig

COMMON = {
    "max.message.bytes": "1048588",
    "message.timestamp.type": "CreateTime",
    "compression.type": "producer",
}


def test_a_new_broker_gives_two_bounds_for_timestamps() -> None:
    settings = TopicLogConfig.from_configs(
        {
            **COMMON,
            "message.timestamp.before.max.ms": str(UNLIMITED_MS),
            "message.timestamp.after.max.ms": "3600000",
        }
    )
    assert settings == TopicLogConfig(
        max_message_bytes=1048588,
        log_append_time=False,
        compression_type="producer",
        timestamp_before_max_ms=UNLIMITED_MS,
        timestamp_after_max_ms=3_600_000,
    )


def test_an_old_broker_gives_one_bound_for_both_directions() -> None:
    settings = TopicLogConfig.from_configs(
        {**COMMON, "message.timestamp.difference.max.ms": "5000"}
    )
    assert (settings.timestamp_before_max_ms, settings.timestamp_after_max_ms) == (5000, 5000)


def test_without_any_bound_there_is_none() -> None:
    settings = TopicLogConfig.from_configs(COMMON)
    assert settings.timestamp_before_max_ms == settings.timestamp_after_max_ms == UNLIMITED_MS


def test_the_time_of_appending_is_recognised() -> None:
    values = {**COMMON, "message.timestamp.type": "LogAppendTime"}
    assert TopicLogConfig.from_configs(values).log_append_time


def test_a_setting_that_every_broker_has_may_not_be_missing() -> None:
    with pytest.raises(KeyError):
        TopicLogConfig.from_configs({"max.message.bytes": "1"})

"""Topic configs of older and newer brokers."""

from __future__ import annotations

from sparkmirror.wire.protocol.topics.topic_log_config import UNLIMITED_MS, TopicLogConfig

COMMON = {
    "max.message.bytes": "1048588",
    "message.timestamp.type": "CreateTime",
    "compression.type": "producer",
}


def test_a_new_broker_has_two_limits_for_timestamps() -> None:
    config = TopicLogConfig.from_configs(
        {
            **COMMON,
            "message.timestamp.before.max.ms": str(UNLIMITED_MS),
            "message.timestamp.after.max.ms": "3600000",
        }
    )
    assert config == TopicLogConfig(
        max_message_bytes=1048588,
        log_append_time=False,
        compression_type="producer",
        timestamp_before_max_ms=UNLIMITED_MS,
        timestamp_after_max_ms=3_600_000,
    )


def test_an_old_broker_has_one_limit_for_both_directions() -> None:
    config = TopicLogConfig.from_configs({**COMMON, "message.timestamp.difference.max.ms": "5000"})
    assert (config.timestamp_before_max_ms, config.timestamp_after_max_ms) == (5000, 5000)


def test_timestamps_without_a_limit_config_are_unlimited() -> None:
    config = TopicLogConfig.from_configs(COMMON)
    assert config.timestamp_before_max_ms == config.timestamp_after_max_ms == UNLIMITED_MS


def test_log_append_time_is_recognised() -> None:
    values = {**COMMON, "message.timestamp.type": "LogAppendTime"}
    assert TopicLogConfig.from_configs(values).log_append_time


def test_a_missing_config_has_kafkas_default() -> None:
    assert TopicLogConfig.from_configs({}) == TopicLogConfig()
    assert TopicLogConfig.from_configs({"max.message.bytes": "1"}).max_message_bytes == 1

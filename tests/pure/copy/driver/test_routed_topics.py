"""Which topics are created for records that transformations send there, and how."""

from __future__ import annotations

from sparkmirror.copy.driver.routed_topics import WantedTopic, missing_topics, own_configs
from sparkmirror.mirror.topics.topic_configs import ConfigEntry, ConfigSource

LATE = WantedTopic("late", 3, "orders", "A.orders")


def test_a_topic_that_does_not_exist_is_created_with_the_largest_number_of_partitions() -> None:
    wider = WantedTopic("late", 8, "pay", "A.pay")
    assert missing_topics([LATE, wider, LATE], {}) == ({"late": wider}, {})


def test_a_topic_with_fewer_partitions_than_the_source_topic_gets_more() -> None:
    wider = LATE._replace(partitions=8)
    assert missing_topics([LATE], {"late": 3}) == ({}, {})
    assert missing_topics([wider, LATE], {"late": 2}) == ({}, {"late": 8})


def test_configs_of_the_remote_topic_are_those_that_are_set_on_it() -> None:
    entries = [
        ConfigEntry(name="retention.ms", value="5", source=ConfigSource.DYNAMIC_TOPIC_CONFIG),
        ConfigEntry(name="segment.ms", value="6", source=ConfigSource.STATIC_BROKER_CONFIG),
        ConfigEntry(name="x", value="7", source=ConfigSource.DEFAULT_CONFIG),
        ConfigEntry(name="y", value=None, source=ConfigSource.DYNAMIC_TOPIC_CONFIG),
    ]
    assert own_configs(entries) == {"retention.ms": "5"}

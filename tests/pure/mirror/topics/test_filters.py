"""Filters select names as MirrorMaker 2's default filters do."""

from __future__ import annotations

from typing import Any

import pytest

from sparkmirror.errors import ConfigError, JavaRegexError, MirrorError
from tests.support.connect.replication_rules import (
    config_property_filter_of,
    group_filter_of,
    topic_filter,
    topic_filter_of,
)
from tests.support.golden import golden_json

RECORDED: dict[str, Any] = golden_json("vectors/filters.json")
REFUSALS: dict[str, type[MirrorError]] = {
    "java.util.regex.PatternSyntaxException": JavaRegexError,
    "org.apache.kafka.common.config.ConfigException": ConfigError,
}


@pytest.mark.parametrize("case", range(len(RECORDED["topic_filter"])))
def test_topics_are_selected_as_recorded(case: int) -> None:
    config, rows = RECORDED["topic_filter"][case].values()
    if isinstance(rows, dict):
        with pytest.raises(REFUSALS[rows["error"]]):
            topic_filter_of(config)
        return
    asked = topic_filter_of(config)
    assert [[name, asked.should_replicate_topic(name)] for name, _ in rows] == rows


@pytest.mark.parametrize("case", range(len(RECORDED["group_filter"])))
def test_groups_are_selected_as_recorded(case: int) -> None:
    config, rows = RECORDED["group_filter"][case].values()
    if isinstance(rows, dict):
        with pytest.raises(REFUSALS[rows["error"]]):
            group_filter_of(config)
        return
    asked = group_filter_of(config)
    assert [[name, asked.should_replicate_group(name)] for name, _ in rows] == rows


@pytest.mark.parametrize("case", range(len(RECORDED["config_property_filter"])))
def test_topic_configs_are_selected_as_recorded(case: int) -> None:
    config, rows = RECORDED["config_property_filter"][case].values()
    if isinstance(rows, dict):
        with pytest.raises(REFUSALS[rows["error"]]):
            config_property_filter_of(config)
        return
    asked = config_property_filter_of(config)
    assert [
        [
            name,
            asked.should_replicate_config_property(name),
            asked.should_replicate_source_default(name),
        ]
        for name, _, _ in rows
    ] == rows


def test_topic_matching() -> None:
    asked = topic_filter(topics="topic1")
    assert asked.should_replicate_topic("topic1")
    assert not asked.should_replicate_topic("topic2")


def test_no_topics() -> None:
    asked = topic_filter(topics="")
    assert not any(map(asked.should_replicate_topic, ("topic1", "topic2", "")))


def test_all_topics() -> None:
    asked = topic_filter(topics=".*")
    assert all(map(asked.should_replicate_topic, ("topic1", "topic2")))


def test_list_of_topics() -> None:
    asked = topic_filter(topics="topic1, topic2")
    assert all(map(asked.should_replicate_topic, ("topic1", "topic2")))
    assert not asked.should_replicate_topic("topic3")
    pattern = topic_filter(topics="topic[0-9]+, other")
    assert all(map(pattern.should_replicate_topic, ("topic1", "topic23", "other")))
    assert not pattern.should_replicate_topic("topic")


def test_excludes_win() -> None:
    asked = topic_filter(topics="orders.*", topics_exclude="orders-tmp")
    assert asked.should_replicate_topic("orders")
    assert not asked.should_replicate_topic("orders-tmp")


def test_config_property_matching() -> None:
    asked = config_property_filter_of({"config.properties.exclude": "prop2"})
    assert asked.should_replicate_config_property("prop1")
    assert not asked.should_replicate_config_property("prop2")
    default = config_property_filter_of({})
    for name in (
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
        "message.timestamp.difference.max.ms",
        "message.timestamp.type",
        "unclean.leader.election.enable",
        "min.insync.replicas",
    ):
        assert not default.should_replicate_config_property(name)
    assert default.should_replicate_config_property("retention.ms")


def test_group_matching() -> None:
    asked = group_filter_of({"groups": "group1"})
    assert asked.should_replicate_group("group1")
    assert not asked.should_replicate_group("group2")
    assert not group_filter_of({"groups": ".*", "groups.exclude": "group1"}).should_replicate_group(
        "group1"
    )

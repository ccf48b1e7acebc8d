"""Topics are selected as in MirrorMaker 2, and never in a cycle."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sparkmirror.mirror.topics.replication_policy import (
    AwsSampleReplicationPolicy,
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
)
from sparkmirror.mirror.topics.topic_selection import TopicSelection, diff_topic_partitions
from sparkmirror.model import SourceAndTarget, TopicPartition
from tests.support.connect.replication_rules import (
    all_partitions,
    parse_partitions,
    policy_of,
    replicated_topics,
    selection,
    topic_filter,
)
from tests.support.golden import golden_json

RECORDED: list[dict[str, Any]] = golden_json("vectors/topic-selection.json")["cases"]
NOTHING = topic_filter(topics="")
EVERYTHING = selection(topic_filter(topics=".*", topics_exclude=""))
HEARTBEATS = ["heartbeats", "us-west.heartbeats", "us-east.us-west.heartbeats"]


@pytest.mark.parametrize("case", range(len(RECORDED)))
def test_topics_are_selected_as_recorded(case: int) -> None:
    recorded = RECORDED[case]
    asked = TopicSelection(
        flow=SourceAndTarget(recorded["source"], recorded["target"]),
        policy=policy_of(recorded["policy"], recorded["config"]),
        topic_filter=topic_filter(topics=recorded["topics"]),
        replicate_heartbeats=recorded["heartbeats_replication_enabled"],
    )
    assert [
        [
            topic,
            asked.should_replicate_topic(topic),
            asked.is_cycle(topic),
            asked.policy.format_remote_topic(asked.flow.source, topic),
        ]
        for topic, *_ in recorded["rows"]
    ] == recorded["rows"]


def test_a_filter_is_asked_once_for_each_topic() -> None:
    asked: list[str] = []

    class RecordingFilter:
        def should_replicate_topic(self, topic: str) -> bool:
            asked.append(topic)
            return topic == "orders"

    rules = replace(selection(), topic_filter=RecordingFilter())
    listed = [TopicPartition(topic, n) for n in range(100) for topic in ("orders", "other")]
    expected = {TopicPartition("orders", number) for number in range(100)}
    assert rules.filter_source_partitions(iter(listed)) == expected
    assert asked == ["orders", "other"]


def test_replicates_heartbeats_by_default() -> None:
    asked = selection(NOTHING)
    assert replicated_topics(HEARTBEATS, asked) == HEARTBEATS
    assert not asked.should_replicate_topic("orders")


def test_replicates_heartbeats_despite_filter() -> None:
    everything = topic_filter(topics=".*", topics_exclude=".*")
    assert replicated_topics(HEARTBEATS, selection(everything)) == HEARTBEATS
    underscore = selection(everything, DefaultReplicationPolicy(separator="_"))
    assert replicated_topics(
        ["heartbeats", "us-west_heartbeats", "us-west.heartbeats"], underscore
    ) == [
        "heartbeats",
        "us-west_heartbeats",
    ]


def test_does_not_replicate_heartbeats_when_disabled() -> None:
    assert replicated_topics(HEARTBEATS, selection(NOTHING, replicate_heartbeats=False)) == []


def test_replicates_heartbeats_when_disabled_but_filter_allows() -> None:
    asked = selection(topic_filter(topics=".*"), replicate_heartbeats=False)
    assert replicated_topics(HEARTBEATS, asked) == HEARTBEATS


def test_no_cycles() -> None:
    circles = [
        "target.topic1",
        "target.source.topic1",
        "source.target.topic1",
        "target.source.target.topic1",
        "source.target.source.topic1",
        "x.target.topic1",
    ]
    asked = selection()
    assert replicated_topics(circles, asked) == []
    assert all(asked.is_cycle(topic) for topic in circles)
    assert replicated_topics(["topic1", "source.topic1", "x.topic1"], asked) == [
        "topic1",
        "source.topic1",
        "x.topic1",
    ]


def test_since_4_4_the_source_alias_is_a_cycle_too() -> None:
    asked = selection(source_alias_is_cycle=True)
    assert replicated_topics(
        ["topic1", "source.topic1", "x.source.topic1", "target.topic1"], asked
    ) == ["topic1"]


@pytest.mark.parametrize(
    "policy",
    [
        IdentityReplicationPolicy(source_alias="source"),
        AwsSampleReplicationPolicy(source_alias="source"),
    ],
    ids=["identity", "aws"],
)
def test_policies_that_keep_names_select_topics_under_the_4_4_rule(
    policy: DefaultReplicationPolicy,
) -> None:
    asked = selection(policy=policy, source_alias_is_cycle=True)
    assert replicated_topics(["topic1", "source.topic1"], asked) == ["topic1", "source.topic1"]


def test_identity_replication() -> None:
    asked = selection(policy=IdentityReplicationPolicy(source_alias="source"))
    data = ["target.topic1", "source.topic1", "topic1", "target.source.topic1"]
    assert replicated_topics(data, asked) == data
    assert replicated_topics(["heartbeats", "us-west.heartbeats", "source.heartbeats"], asked) == [
        "heartbeats",
        "us-west.heartbeats",
        "source.heartbeats",
    ]
    circles = ["target.heartbeats", "target.source.heartbeats", "source.target.heartbeats"]
    assert replicated_topics(circles, asked) == []


def test_is_cycle_with_null_upstream_topic() -> None:
    asked = selection(policy=AwsSampleReplicationPolicy(source_alias="source"))
    assert not asked.is_cycle("topic1")
    assert selection(policy=AwsSampleReplicationPolicy(source_alias="target")).is_cycle("topic1")


def test_connects_internal_topics_are_never_selected() -> None:
    everything = topic_filter(topics=".*", topics_exclude="")
    asked = selection(everything, DefaultReplicationPolicy(separator="_", internal_separator="_"))
    assert replicated_topics(
        ["mm2-configs.A.internal", "mm2-offsets.A.internal", "orders"], asked
    ) == ["orders"]


def test_target_partitions_are_those_of_the_source_but_no_checkpoints() -> None:
    listed = parse_partitions(
        "source.t-0", "source.t-1", "other.t-0", "t-0", "source.checkpoints.internal-0"
    )
    assert selection().filter_target_partitions(listed) == parse_partitions(
        "source.t-0", "source.t-1"
    )
    identity = selection(policy=IdentityReplicationPolicy(source_alias="source"))
    assert parse_partitions("t-0", "other.t-0") <= identity.filter_target_partitions(listed)


def test_source_partitions_are_those_of_topics_to_replicate() -> None:
    listed = parse_partitions("orders-0", "orders-1", "target.orders-0", "__consumer_offsets-0")
    assert selection().filter_source_partitions(listed) == parse_partitions("orders-0", "orders-1")


def test_refresh_topic_partitions() -> None:
    """Upstream's: each refresh needs a reconfiguration until the remote topic exists."""
    asked = selection()
    source = parse_partitions("topic-0")
    first = diff_topic_partitions(
        asked, known_source=frozenset(), source=source, target=frozenset()
    )
    assert (first.new, first.deleted, first.missing) == (source, frozenset(), source)
    again = diff_topic_partitions(asked, known_source=source, source=source, target=frozenset())
    assert again.needs_reconfiguration
    assert (again.new, again.missing) == (frozenset(), source)
    done = diff_topic_partitions(
        asked, known_source=source, source=source, target=parse_partitions("source.topic-0")
    )
    assert not done.needs_reconfiguration


def test_refresh_topic_partitions_topic_on_target_first() -> None:
    """Upstream's: a new topic on the target alone needs no reconfiguration."""
    asked = selection()
    target = parse_partitions("source.topic-0", "source.topic-1")
    idle = diff_topic_partitions(asked, known_source=frozenset(), source=frozenset(), target=target)
    assert not idle.needs_reconfiguration
    source = parse_partitions("topic-0", "topic-1")
    change = diff_topic_partitions(asked, known_source=frozenset(), source=source, target=target)
    assert change.needs_reconfiguration
    assert change.missing == frozenset()
    assert not diff_topic_partitions(
        asked, known_source=source, source=source, target=target
    ).needs_reconfiguration


def test_a_topic_deleted_on_the_source_needs_a_reconfiguration() -> None:
    found = diff_topic_partitions(
        selection(),
        known_source=parse_partitions("gone-0"),
        source=frozenset(),
        target=parse_partitions("source.gone-0"),
    )
    assert found.needs_reconfiguration
    assert found.deleted == parse_partitions("gone-0")


def test_a_refresh_logs_as_in_java() -> None:
    found = diff_topic_partitions(
        selection(),
        known_source=parse_partitions("gone-0"),
        source=parse_partitions("new-0", "new-1"),
        target=parse_partitions("source.new-0"),
    )
    assert str(found) == (
        "Found 2 new topic-partitions on source. "
        "Found 1 deleted topic-partitions on source. "
        "Found 1 topic-partitions missing on target."
    )


def test_a_policy_without_upstream_topics_finds_its_remote_topics() -> None:
    asked = selection(policy=AwsSampleReplicationPolicy(source_alias="source"))
    both = parse_partitions("t-0", "t-1")
    assert not diff_topic_partitions(
        asked, known_source=both, source=both, target=both
    ).needs_reconfiguration


segments = st.sampled_from(["source", "target", "x", "orders", "heartbeats", "mm2", "internal", ""])
topic_names = st.lists(segments, min_size=1, max_size=4).map(".".join)


@settings(max_examples=30)
@given(topic=topic_names, prefix=st.lists(st.sampled_from(["a", "source"]), max_size=2))
def test_a_remote_topic_of_the_target_is_never_selected(topic: str, prefix: list[str]) -> None:
    remote = EVERYTHING.policy.format_remote_topic("target", topic)
    assume(EVERYTHING.policy.topic_source(remote))  # `target.` is not the name of a remote topic
    name = ".".join([*prefix, remote])
    assert EVERYTHING.is_cycle(name)
    assert not EVERYTHING.should_replicate_topic(name)


counts = st.dictionaries(topic_names.filter(bool), st.integers(1, 3), max_size=5)


@settings(max_examples=30)
@given(before=counts, after=counts)
def test_refresh_is_idempotent(before: dict[str, int], after: dict[str, int]) -> None:
    asked = EVERYTHING
    known = asked.filter_source_partitions(all_partitions(before))
    source = asked.filter_source_partitions(all_partitions(after))
    found = diff_topic_partitions(asked, known_source=known, source=source, target=frozenset())
    assert known - found.deleted | found.new == source
    assert found.missing == source
    copies = asked.filter_target_partitions(asked.remote_partition(p) for p in found.missing)
    again = diff_topic_partitions(asked, known_source=source, source=source, target=copies)
    assert (again.new, again.deleted) == (frozenset(), frozenset())
    nameless = {p for p in source if not asked.is_remote_topic(asked.remote_partition(p).topic)}
    assert again.missing == nameless


def test_a_partition_is_copied_to_the_same_number() -> None:
    assert selection().remote_partition(TopicPartition("t", 7)) == ("source.t", 7)

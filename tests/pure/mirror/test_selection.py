"""Topics are selected as MirrorMaker 2 selects them, and never in a circle."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sparkmirror.mirror.naming import AwsSamplePolicy, DefaultPolicy, IdentityPolicy
from sparkmirror.mirror.selection import Selection, refresh
from sparkmirror.model import SourceAndTarget, TopicPartition
from tests.support.flow_rules import (
    all_of,
    chosen,
    partitions,
    policy_of,
    selection,
    topic_filter,
)
from tests.support.golden import golden_json

RECORDED: list[dict[str, Any]] = golden_json("vectors/topic-selection.json")["cases"]
NOTHING = topic_filter(topics="")
EVERYTHING = selection(topic_filter(topics=".*", topics_exclude=""))
HEARTBEATS = ["heartbeats", "us-west.heartbeats", "us-east.us-west.heartbeats"]


@pytest.mark.parametrize("case", range(len(RECORDED)))
def test_every_recorded_topic_is_judged_alike(case: int) -> None:
    recorded = RECORDED[case]
    asked = Selection(
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


def test_replicates_heartbeats_by_default() -> None:
    asked = selection(NOTHING)
    assert chosen(HEARTBEATS, asked) == HEARTBEATS
    assert not asked.should_replicate_topic("orders")


def test_replicates_heartbeats_despite_filter() -> None:
    everything = topic_filter(topics=".*", topics_exclude=".*")
    assert chosen(HEARTBEATS, selection(everything)) == HEARTBEATS
    underscore = selection(everything, DefaultPolicy(separator="_"))
    assert chosen(["heartbeats", "us-west_heartbeats", "us-west.heartbeats"], underscore) == [
        "heartbeats",
        "us-west_heartbeats",
    ]


def test_does_not_replicate_heartbeats_when_disabled() -> None:
    assert chosen(HEARTBEATS, selection(NOTHING, replicate_heartbeats=False)) == []


def test_replicates_heartbeats_when_disabled_but_filter_allows() -> None:
    asked = selection(topic_filter(topics=".*"), replicate_heartbeats=False)
    assert chosen(HEARTBEATS, asked) == HEARTBEATS


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
    assert chosen(circles, asked) == []
    assert all(asked.is_cycle(topic) for topic in circles)
    assert chosen(["topic1", "source.topic1", "x.topic1"], asked) == [
        "topic1",
        "source.topic1",
        "x.topic1",
    ]


def test_since_4_4_the_source_alias_is_a_circle_too() -> None:
    asked = selection(source_alias_is_cycle=True)
    assert chosen(["topic1", "source.topic1", "x.source.topic1", "target.topic1"], asked) == [
        "topic1"
    ]


@pytest.mark.parametrize(
    "policy",
    [IdentityPolicy(source_alias="source"), AwsSamplePolicy(source_alias="source")],
    ids=["identity", "aws"],
)
def test_policies_that_keep_names_copy_all_the_same_under_the_4_4_rule(
    policy: DefaultPolicy,
) -> None:
    asked = selection(policy=policy, source_alias_is_cycle=True)
    assert chosen(["topic1", "source.topic1"], asked) == ["topic1", "source.topic1"]


def test_identity_replication() -> None:
    asked = selection(policy=IdentityPolicy(source_alias="source"))
    data = ["target.topic1", "source.topic1", "topic1", "target.source.topic1"]
    assert chosen(data, asked) == data
    assert chosen(["heartbeats", "us-west.heartbeats", "source.heartbeats"], asked) == [
        "heartbeats",
        "us-west.heartbeats",
        "source.heartbeats",
    ]
    circles = ["target.heartbeats", "target.source.heartbeats", "source.target.heartbeats"]
    assert chosen(circles, asked) == []


def test_is_cycle_with_null_upstream_topic() -> None:
    asked = selection(policy=AwsSamplePolicy(source_alias="source"))
    assert not asked.is_cycle("topic1")
    assert selection(policy=AwsSamplePolicy(source_alias="target")).is_cycle("topic1")


def test_connects_own_topics_are_never_copied() -> None:
    everything = topic_filter(topics=".*", topics_exclude="")
    asked = selection(everything, DefaultPolicy(separator="_", internal_separator="_"))
    assert chosen(["mm2-configs.A.internal", "mm2-offsets.A.internal", "orders"], asked) == [
        "orders"
    ]


def test_target_partitions_are_those_of_the_source_but_no_checkpoints() -> None:
    listed = partitions(
        "source.t-0", "source.t-1", "other.t-0", "t-0", "source.checkpoints.internal-0"
    )
    assert selection().target_partitions(listed) == partitions("source.t-0", "source.t-1")
    identity = selection(policy=IdentityPolicy(source_alias="source"))
    assert partitions("t-0", "other.t-0") <= identity.target_partitions(listed)


def test_source_partitions_are_those_of_topics_to_replicate() -> None:
    listed = partitions("orders-0", "orders-1", "target.orders-0", "__consumer_offsets-0")
    assert selection().source_partitions(listed) == partitions("orders-0", "orders-1")


def test_refresh_topic_partitions() -> None:
    """Upstream's: creation is asked for again until the remote topic exists, then no more."""
    asked = selection()
    source = partitions("topic-0")
    first = refresh(asked, known_source=frozenset(), source=source, target=frozenset())
    assert (first.new, first.deleted, first.missing) == (source, frozenset(), source)
    again = refresh(asked, known_source=source, source=source, target=frozenset())
    assert again.calls_for_action
    assert (again.new, again.missing) == (frozenset(), source)
    done = refresh(asked, known_source=source, source=source, target=partitions("source.topic-0"))
    assert not done.calls_for_action


def test_refresh_topic_partitions_topic_on_target_first() -> None:
    """Upstream's: what appears on the target alone calls for nothing."""
    asked = selection()
    target = partitions("source.topic-0", "source.topic-1")
    idle = refresh(asked, known_source=frozenset(), source=frozenset(), target=target)
    assert not idle.calls_for_action
    source = partitions("topic-0", "topic-1")
    change = refresh(asked, known_source=frozenset(), source=source, target=target)
    assert change.calls_for_action
    assert change.missing == frozenset()
    assert not refresh(asked, known_source=source, source=source, target=target).calls_for_action


def test_a_topic_gone_from_the_source_calls_for_a_new_deal() -> None:
    found = refresh(
        selection(),
        known_source=partitions("gone-0"),
        source=frozenset(),
        target=partitions("source.gone-0"),
    )
    assert found.calls_for_action
    assert found.deleted == partitions("gone-0")


def test_refresh_speaks_as_the_original() -> None:
    found = refresh(
        selection(),
        known_source=partitions("gone-0"),
        source=partitions("new-0", "new-1"),
        target=partitions("source.new-0"),
    )
    assert str(found) == (
        "Found 2 new topic-partitions on source. "
        "Found 1 deleted topic-partitions on source. "
        "Found 1 topic-partitions missing on target."
    )


def test_a_policy_without_a_way_back_does_not_miss_its_copies() -> None:
    asked = selection(policy=AwsSamplePolicy(source_alias="source"))
    both = partitions("t-0", "t-1")
    assert not refresh(asked, known_source=both, source=both, target=both).calls_for_action


segments = st.sampled_from(["source", "target", "x", "orders", "heartbeats", "mm2", "internal", ""])
topic_names = st.lists(segments, min_size=1, max_size=4).map(".".join)


@settings(max_examples=30)
@given(topic=topic_names, prefix=st.lists(st.sampled_from(["a", "source"]), max_size=2))
def test_a_copy_on_the_way_back_is_never_selected(topic: str, prefix: list[str]) -> None:
    remote = EVERYTHING.policy.format_remote_topic("target", topic)
    assume(EVERYTHING.policy.topic_source(remote))  # `target.` is no copy by its name
    name = ".".join([*prefix, remote])
    assert EVERYTHING.is_cycle(name)
    assert not EVERYTHING.should_replicate_topic(name)


counts = st.dictionaries(topic_names.filter(bool), st.integers(1, 3), max_size=5)


@settings(max_examples=30)
@given(before=counts, after=counts)
def test_refresh_is_idempotent(before: dict[str, int], after: dict[str, int]) -> None:
    asked = EVERYTHING
    known = asked.source_partitions(all_of(before))
    source = asked.source_partitions(all_of(after))
    found = refresh(asked, known_source=known, source=source, target=frozenset())
    assert known - found.deleted | found.new == source
    assert found.missing == source
    copies = asked.target_partitions(asked.remote_partition(p) for p in found.missing)
    again = refresh(asked, known_source=source, source=source, target=copies)
    assert (again.new, again.deleted) == (frozenset(), frozenset())
    nameless = {p for p in source if not asked.is_remote_topic(asked.remote_partition(p).topic)}
    assert again.missing == nameless


def test_a_partition_is_copied_to_the_same_number() -> None:
    assert selection().remote_partition(TopicPartition("t", 7)) == ("source.t", 7)

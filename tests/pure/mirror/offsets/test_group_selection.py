"""A group has checkpoints if the filter selects it and it committed a selected topic."""

from __future__ import annotations

from sparkmirror.mirror.offsets.group_selection import groups_to_replicate, groups_with_offsets
from tests.support.connect.replication_rules import group_filter_of, parse_partitions, topic_filter


def test_find_consumer_groups() -> None:
    listed = ["g1", "g2"]
    committed = {"g1": parse_partitions("t1-0"), "g2": parse_partitions("t2-0", "t2-1")}
    assert groups_to_replicate(listed, group_filter_of({})) == {"g1", "g2"}
    assert groups_with_offsets(committed, topic_filter()) == {"g1", "g2"}
    assert groups_with_offsets(committed, topic_filter(topics="")) == frozenset()


def test_find_consumer_groups_in_common_scenarios() -> None:
    """Upstream's: the filters exclude t1, t3 and g4; the task does not list offsets of g4."""
    topics = topic_filter(topics="t2|t4")
    asked_about = groups_to_replicate(
        ["g1", "g2", "g3", "g4"], group_filter_of({"groups.exclude": "g4"})
    )
    assert asked_about == {"g1", "g2", "g3"}
    committed = {
        "g1": parse_partitions("t1-0", "t2-0"),
        "g2": parse_partitions("t2-0", "t3-0"),
        "g3": parse_partitions("t3-0"),
    }
    assert groups_with_offsets(committed, topics) == {"g1", "g2"}


def test_a_group_without_offsets_is_left_out() -> None:
    assert groups_with_offsets({"g": ()}, topic_filter()) == frozenset()


def test_only_the_topic_filter_decides_about_a_topic() -> None:
    committed = {"g1": parse_partitions("target.t-0"), "g2": parse_partitions("heartbeats-0")}
    assert groups_with_offsets(committed, topic_filter(topics=r"target\..*")) == {"g1"}

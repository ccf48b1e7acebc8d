"""How long checkpoints take, group by group."""

from __future__ import annotations

from sparkmirror.connect.connectors.checkpoint.checkpoint_latency import (
    CheckpointKey,
    CheckpointLatencies,
    CheckpointLatency,
)
from sparkmirror.metrics.sampled_stat import Values
from sparkmirror.model import SourceAndTarget, TopicPartition

FLOW = SourceAndTarget("A", "B")


def key(group: str, partition: int = 0, connector: str = "cpc") -> CheckpointKey:
    return CheckpointKey(connector, FLOW, group, TopicPartition("A.t", partition))


def test_each_group_and_partition_has_its_own_times() -> None:
    latencies = CheckpointLatencies(clock=lambda: 5.0)
    latencies.record([key("one"), key("two")], 10.0)
    latencies.record([key("one")], 30.0)
    assert [*latencies.latencies()] == [
        CheckpointLatency(key("one"), 30.0, Values(2, 40.0, 10.0, 30.0)),
        CheckpointLatency(key("two"), 10.0, Values(1, 10.0, 10.0, 10.0)),
    ]


def test_groups_that_are_not_followed_any_more_are_forgotten() -> None:
    latencies = CheckpointLatencies()
    latencies.record([key("one"), key("two"), key("one", connector="other")], 10.0)
    latencies.remove("cpc", ["one"])
    assert [one.key for one in latencies.latencies()] == [key("two"), key("one", connector="other")]


def test_the_last_value_stays_when_the_window_is_empty() -> None:
    now = [0.0]
    latencies = CheckpointLatencies(clock=lambda: now[0])
    latencies.record([key("one")], 10.0)
    now[0] = 120.0
    [found] = latencies.latencies()
    assert (found.last_ms, found.window.count) == (10.0, 0)

"""Recorded offset syncs and group offsets give the recorded checkpoints.

The recordings have only the polls of Java's task that emitted checkpoints: the timestamp of a
checkpoint is the time of its poll, just before the task listed the group's offsets. So the replay
polls each group at these times. It uses the syncs written before, and the group offsets of that
phase of the scenario which the recorded checkpoints show. It requires exactly the recorded
checkpoints of each poll. Polls without checkpoints are not recorded. The syncs come from the
recording, because they depend on the flushes of Java's task.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from sparkmirror.mirror.offsets.checkpoints import Checkpointer, CheckpointStore
from sparkmirror.mirror.offsets.group_offset_sync import (
    TargetGroup,
    TargetGroupState,
    plan_group_offset_write,
)
from sparkmirror.mirror.offsets.offset_sync_store import OffsetSyncStore
from sparkmirror.mirror.offsets.offset_translation import OffsetTranslator
from sparkmirror.mirror.offsets.records import Checkpoint, OffsetSync
from sparkmirror.mirror.offsets.run_map import OffsetRun, RunMap
from sparkmirror.mirror.topics.filters import DefaultTopicFilter
from sparkmirror.mirror.topics.replication_policy import DefaultReplicationPolicy
from sparkmirror.model import OffsetAndMetadata, SourceAndTarget, TopicPartition
from tests.support.golden import GoldenRecord, golden_json, golden_records

Committed = dict[TopicPartition, OffsetAndMetadata]


@dataclass(frozen=True)
class Mode:
    flow: SourceAndTarget
    separator: str
    topics: tuple[str, ...]


ALL = ("orders", "payments", r"my\.dotted\.topic", "empty-topic", r"audit\.internal", "big")
MODES = {
    "connect-mode": Mode(SourceAndTarget("source", "target"), ".", ALL),
    "dedicated-mode": Mode(SourceAndTarget("A", "B"), ".", ALL),
    "separator-underscore-syncs-on-target": Mode(
        SourceAndTarget("source", "target"), "_", ("orders", "payments", "bytes-topic")
    ),
    "exactly-once": Mode(SourceAndTarget("source", "target"), ".", ("eos-t", "orders")),
}


def phases() -> list[dict[str, Committed]]:
    """Return the committed offsets of each group after each phase of the scenario."""
    state: dict[str, Committed] = {}
    result = []
    for phase in golden_json("topics/scenario.json")["phases"]:
        for group in phase["group_offsets"]:
            committed = dict(state.get(group["group"], {}))
            for item in group["offsets"]:
                where = TopicPartition(item["topic"], item["partition"])
                # The client of the recordings appends a NUL to all metadata.
                metadata = item["metadata"] and item["metadata"] + "\0"
                committed[where] = OffsetAndMetadata(item["offset"], metadata)
            state = state | {group["group"]: committed}
        result.append(state)
    return result


# The committed offsets of the exactly-once recording, which is not part of the scenario.
EXACTLY_ONCE: list[dict[str, Committed]] = [
    {
        "app-1": {
            TopicPartition("orders", 0): OffsetAndMetadata(3),
            TopicPartition("eos-t", 0): OffsetAndMetadata(4),
        }
    }
]


class Replay:
    """A checkpoint task that polls at the times of a recording."""

    def __init__(self, mode: str) -> None:
        self.phases = EXACTLY_ONCE if mode == "exactly-once" else phases()
        self.phase: dict[str, int] = {}
        self.written = golden_records(f"topics/{mode}.offset-syncs.jsonl")
        self.syncs = OffsetSyncStore()
        self.syncs.mark_read_to_end()
        self.checkpoint_store = CheckpointStore("checkpoints")
        self.checkpoint_store.load((), ())
        described = MODES[mode]
        self.checkpointer = Checkpointer(
            described.flow,
            DefaultReplicationPolicy(separator=described.separator),
            DefaultTopicFilter.of(described.topics, ()),
            OffsetTranslator(self.syncs, {}),
            self.checkpoint_store,
        )

    def poll(self, time_ms: int, group: str, recorded: list[Checkpoint]) -> list[Checkpoint]:
        """Poll a group at a recorded time; return the checkpoints."""
        while self.written and self.written[0].timestamp_ms <= time_ms:
            self.syncs.add(OffsetSync.decode(self.written.pop(0).record))
        committed = self.committed(group, recorded)
        return list(self.checkpointer.checkpoints_for_group(group, committed).checkpoints)

    def committed(self, group: str, recorded: list[Checkpoint]) -> Committed:
        """Return the group's offsets of the first phase, from the last used one on, that fits."""
        for number in range(self.phase.get(group, 0), len(self.phases)):
            committed = self.phases[number].get(group, {})
            shown = {
                (self.checkpointer.remote_partition(where), position.offset, position.metadata)
                for where, position in committed.items()
            }
            if {(c.partition, c.upstream, c.metadata) for c in recorded} <= shown:
                self.phase[group] = number
                return committed
        raise AssertionError(f"{recorded} show offsets that {group} never had")


def recorded_polls(recorded: list[GoldenRecord]) -> dict[tuple[int, str], list[Checkpoint]]:
    """Return the recorded checkpoints by time and group, in their order."""
    found: dict[tuple[int, str], list[Checkpoint]] = {}
    for item in recorded:
        made = Checkpoint.decode(item.record)
        found.setdefault((item.timestamp_ms, made.group), []).append(made)
    return found


def by_partition(checkpoints: list[Checkpoint]) -> list[Checkpoint]:
    """Sort checkpoints. The order within one poll is that of a Java map."""
    return sorted(checkpoints, key=lambda c: c.partition)


@pytest.mark.parametrize("mode", MODES)
def test_recorded_syncs_and_offsets_give_the_recorded_checkpoints(mode: str) -> None:
    replay = Replay(mode)
    recorded = golden_records(f"topics/{mode}.checkpoints.jsonl")
    assert recorded
    for (time_ms, group), expected in recorded_polls(recorded).items():
        made = replay.poll(time_ms, group, expected)
        assert by_partition(made) == by_partition(expected)
        assert {c.encode() for c in made} == {c.encode() for c in expected}


@pytest.mark.parametrize(("mode", "target"), [("connect-mode", "target"), ("dedicated-mode", "B")])
def test_group_offsets_on_the_target_end_as_recorded(mode: str, target: str) -> None:
    """The target has no consumers, so a group is first absent and then empty."""
    replay = Replay(mode)
    groups: dict[str, Committed] = {}
    for (time_ms, group), expected in recorded_polls(
        golden_records(f"topics/{mode}.checkpoints.jsonl")
    ).items():
        replay.poll(time_ms, group, expected)
        committed = groups.get(group)
        state = TargetGroupState.ABSENT if committed is None else TargetGroupState.EMPTY
        write = plan_group_offset_write(
            replay.checkpoint_store.of_group(group),
            TargetGroup(state=state, committed=dict(committed or {})),
            safely=True,
        )
        groups[group] = {**(committed or {}), **write.offsets}
    final = golden_json(f"topics/{mode}.group-offsets.json")[target]
    assert {
        group: {where: position.offset for where, position in committed.items()}
        for group, committed in groups.items()
    } == {
        group: {TopicPartition(topic, number): offset for topic, number, offset, _ in rows}
        for group, rows in final.items()
    }


def test_the_run_map_of_the_recorded_records_agrees_with_the_syncs_and_is_finer() -> None:
    """There are aborted transactions and markers. Equal values show the pairs of offsets."""
    source, remote = TopicPartition("eos-t", 0), TopicPartition("source.eos-t", 0)
    read = [
        item
        for item in golden_records("topics/exactly-once.source-records-read-committed.jsonl")
        if (item.topic, item.partition) == source
    ]
    copies = [
        item
        for item in golden_records("topics/exactly-once.mirrored.jsonl")
        if (item.topic, item.partition) == remote
    ]
    run_map = RunMap()
    for original, copy in zip(read, copies, strict=True):
        assert original.record == copy.record
        run_map.append(original.offset, copy.offset, 1)
    assert list(run_map) == [OffsetRun(0, 0, 3), OffsetRun(7, 4, 2), OffsetRun(10, 7, 1)]
    for item in golden_records("topics/exactly-once.offset-syncs.jsonl"):
        sync = OffsetSync.decode(item.record)
        if sync.partition == source:
            assert run_map.translate_downstream(sync.upstream) == sync.downstream
    (recorded,) = (
        made
        for item in golden_records("topics/exactly-once.checkpoints.jsonl")
        if (made := Checkpoint.decode(item.record)).partition == remote
    )
    assert (recorded.upstream, recorded.downstream) == (4, 1)
    assert run_map.translate_downstream(recorded.upstream) == 4, (
        "the next record, where the syncs go to 1"
    )

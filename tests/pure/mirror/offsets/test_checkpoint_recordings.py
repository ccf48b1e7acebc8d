"""Recorded offset syncs and group offsets, replayed: they must lead to the recorded checkpoints.

What is required, and why not more. The recordings do not say when the original looked at a group,
only when a look led to a checkpoint: that is the record's time, taken just before the offsets were
listed. So, for each group, the replay looks exactly at those moments, with all syncs written until
then and with the offsets committed in the phase of the scenario that the recorded checkpoints
show, and requires *exactly* the recorded checkpoints, no more and no fewer, in the same order of
moments. Looks in between that led to nothing are not known and cannot be required. Which syncs
exist depends on the original's flushes; they are taken from the recording, too.
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
    """What each group has committed after each phase of the scenario."""
    state: dict[str, Committed] = {}
    result = []
    for phase in golden_json("topics/scenario.json")["phases"]:
        for group in phase["group_offsets"]:
            committed = dict(state.get(group["group"], {}))
            for item in group["offsets"]:
                where = TopicPartition(item["topic"], item["partition"])
                # The client that committed for the recordings ended every note with a NUL.
                note = item["metadata"] and item["metadata"] + "\0"
                committed[where] = OffsetAndMetadata(item["offset"], note)
            state = state | {group["group"]: committed}
        result.append(state)
    return result


# Not part of the scenario: what the group of the exactly-once recording had committed.
EXACTLY_ONCE: list[dict[str, Committed]] = [
    {
        "app-1": {
            TopicPartition("orders", 0): OffsetAndMetadata(3),
            TopicPartition("eos-t", 0): OffsetAndMetadata(4),
        }
    }
]


class Replay:
    """A checkpoint task that lives through a recording."""

    def __init__(self, mode: str) -> None:
        self.phases = EXACTLY_ONCE if mode == "exactly-once" else phases()
        self.phase: dict[str, int] = {}
        self.written = golden_records(f"topics/{mode}.offset-syncs.jsonl")
        self.syncs = OffsetSyncStore()
        self.syncs.mark_read_to_end()
        self.memory = CheckpointStore()
        self.memory.load((), ())
        described = MODES[mode]
        self.checkpointer = Checkpointer(
            described.flow,
            DefaultReplicationPolicy(separator=described.separator),
            DefaultTopicFilter.of(described.topics, ()),
            OffsetTranslator(self.syncs, {}),
            self.memory,
        )

    def look(self, moment_ms: int, group: str, recorded: list[Checkpoint]) -> list[Checkpoint]:
        """Look at a group at a recorded moment; return the checkpoints."""
        while self.written and self.written[0].timestamp_ms <= moment_ms:
            self.syncs.add(OffsetSync.decode(self.written.pop(0).record))
        committed = self.committed(group, recorded)
        return list(self.checkpointer.checkpoints_for_group(group, committed).checkpoints)

    def committed(self, group: str, recorded: list[Checkpoint]) -> Committed:
        """The offsets of the earliest phase, from the last one on, that shows the recorded ones."""
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


def looks(recorded: list[GoldenRecord]) -> dict[tuple[int, str], list[Checkpoint]]:
    """Group the recorded checkpoints by moment and group, in their order."""
    found: dict[tuple[int, str], list[Checkpoint]] = {}
    for item in recorded:
        made = Checkpoint.decode(item.record)
        found.setdefault((item.timestamp_ms, made.group), []).append(made)
    return found


def by_partition(checkpoints: list[Checkpoint]) -> list[Checkpoint]:
    """Order within one look is that of a Java map and means nothing."""
    return sorted(checkpoints, key=lambda c: c.partition)


@pytest.mark.parametrize("mode", MODES)
def test_recorded_syncs_and_offsets_lead_to_the_recorded_checkpoints(mode: str) -> None:
    replay = Replay(mode)
    recorded = golden_records(f"topics/{mode}.checkpoints.jsonl")
    assert recorded
    for (moment_ms, group), expected in looks(recorded).items():
        made = replay.look(moment_ms, group, expected)
        assert by_partition(made) == by_partition(expected)
        assert {c.encode() for c in made} == {c.encode() for c in expected}


@pytest.mark.parametrize(("mode", "target"), [("connect-mode", "target"), ("dedicated-mode", "B")])
def test_writing_after_each_look_leaves_the_groups_where_the_original_left_them(
    mode: str, target: str
) -> None:
    """Nobody consumes on the target, so its groups are absent, then empty, and only move on."""
    replay = Replay(mode)
    groups: dict[str, Committed] = {}
    for (moment_ms, group), expected in looks(
        golden_records(f"topics/{mode}.checkpoints.jsonl")
    ).items():
        replay.look(moment_ms, group, expected)
        standing = groups.get(group)
        presence = TargetGroupState.ABSENT if standing is None else TargetGroupState.EMPTY
        write = plan_group_offset_write(
            replay.memory.of_group(group),
            TargetGroup(state=presence, committed=dict(standing or {})),
            safely=True,
        )
        groups[group] = {**(standing or {}), **write.offsets}
    final = golden_json(f"topics/{mode}.group-offsets.json")[target]
    assert {
        group: {where: position.offset for where, position in committed.items()}
        for group, committed in groups.items()
    } == {
        group: {TopicPartition(topic, number): offset for topic, number, offset, _ in rows}
        for group, rows in final.items()
    }


def test_the_run_map_of_the_recorded_records_agrees_with_the_syncs_and_is_finer() -> None:
    """Aborted source transactions, markers on both sides: the pairs are known from the values."""
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

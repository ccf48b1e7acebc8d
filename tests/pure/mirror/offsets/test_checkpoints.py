"""Checkpoints: which are emitted, why others are not, and what a restart reads."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.errors import ClusterError, ClusterUnavailable, NotAuthorized
from sparkmirror.mirror.offsets.checkpoints import (
    Checkpointer,
    CheckpointOutcome,
    CheckpointResult,
    CheckpointStore,
)
from sparkmirror.mirror.offsets.offset_sync_store import OffsetSyncStore
from sparkmirror.mirror.offsets.offset_translation import OffsetTranslator
from sparkmirror.mirror.offsets.records import Checkpoint, OffsetSync, RecordBytes
from sparkmirror.mirror.offsets.run_map import RunMap
from sparkmirror.mirror.topics.filters import DefaultTopicFilter
from sparkmirror.mirror.topics.replication_policy import DefaultReplicationPolicy
from sparkmirror.model import OffsetAndMetadata, SourceAndTarget, TopicPartition
from tests.support.golden import golden_json

T0 = TopicPartition("t", 0)
REMOTE = TopicPartition("source1.t", 0)


class Flow:
    """A checkpointer and its stores for the flow source1->target2."""

    def __init__(
        self,
        *,
        syncs: OffsetSyncStore | None = None,
        memory: CheckpointStore | None = None,
        exclude: tuple[str, ...] = (),
        flow: SourceAndTarget | None = None,
    ) -> None:
        self.syncs = OffsetSyncStore() if syncs is None else syncs
        self.syncs.mark_read_to_end()
        self.memory = loaded() if memory is None else memory
        self.runs: dict[TopicPartition, RunMap] = {}
        self.checkpointer = Checkpointer(
            SourceAndTarget("source1", "target2") if flow is None else flow,
            DefaultReplicationPolicy(),
            DefaultTopicFilter.of([".*"], exclude),
            OffsetTranslator(self.syncs, self.runs),
            self.memory,
        )

    def sync(self, upstream: int, downstream: int, partition: TopicPartition = T0) -> None:
        self.syncs.add(OffsetSync(partition=partition, upstream=upstream, downstream=downstream))

    def at(self, upstream: int, partition: TopicPartition = T0) -> CheckpointResult:
        return self.checkpointer.checkpoints_for_group(
            "g", {partition: OffsetAndMetadata(upstream)}
        )

    def emitted(self, upstream: int, partition: TopicPartition = T0) -> int | None:
        """Return the downstream offset of the checkpoint of a group at `upstream`."""
        found = self.at(upstream, partition).checkpoints
        return found[0].downstream if found else None


def loaded(*checkpoints: Checkpoint) -> CheckpointStore:
    memory = CheckpointStore("A.checkpoints.internal")
    assert memory.load({"g"}, [checkpoint.encode() for checkpoint in checkpoints])
    return memory


def checkpoint(group: str, upstream: int, downstream: int, metadata: str = "") -> Checkpoint:
    return Checkpoint(
        group=group,
        partition=REMOTE,
        upstream=upstream,
        downstream=downstream,
        metadata=metadata,
    )


def test_40_recorded_sequences_emit_the_recorded_checkpoints() -> None:
    vectors = golden_json("vectors/checkpoints.json")
    aliases = SourceAndTarget(vectors["source_alias"], vectors["target_alias"])
    assert len(vectors["checkpoint_sequences"]) == 40
    for sequence in vectors["checkpoint_sequences"]:
        partition = TopicPartition.parse(sequence["source_topic_partition"])
        flow = Flow(flow=aliases)
        for event in sequence["events"]:
            if event["op"] == "sync":
                flow.sync(event["upstream"], event["downstream"], partition)
            else:
                position = OffsetAndMetadata(event["upstream"], event["metadata"])
                found = flow.checkpointer.checkpoints_for_group(
                    "g", {partition: position}
                ).checkpoints
                assert [
                    [str(c.partition), c.upstream, c.downstream, c.metadata] for c in found
                ] == event["emitted"]


@pytest.mark.parametrize(
    ("topic", "remote"),
    [
        ("topic3", "source1.topic3"),
        ("target2.topic3", "topic3"),
        ("source6.topic7", "source1.source6.topic7"),
    ],
)
def test_downstream_topic_renaming(topic: str, remote: str) -> None:
    checkpointer = Flow().checkpointer
    assert checkpointer.remote_partition(TopicPartition(topic, 4)) == TopicPartition(remote, 4)


def test_checkpoint() -> None:
    flow = Flow()
    topic1, topic5 = TopicPartition("topic1", 2), TopicPartition("target2.topic5", 6)
    flow.sync(3, 4, topic1)
    flow.sync(7, 8, topic5)
    first = flow.checkpointer.checkpoints_for_group(
        "g", {topic1: OffsetAndMetadata(10, "m")}
    ).checkpoints
    assert first == (
        Checkpoint(
            group="g",
            partition=TopicPartition("source1.topic1", 2),
            upstream=10,
            downstream=5,
            metadata="m",
        ),
    )
    (second,) = flow.at(12, topic5).checkpoints
    assert (second.partition, second.downstream) == (TopicPartition("topic5", 6), 9)
    (third,) = flow.at(7, topic5).checkpoints
    assert (third.upstream, third.downstream) == (7, 8)


def test_no_checkpoint_for_topic_without_offset_syncs() -> None:
    flow = Flow()
    flow.sync(1, 1, TopicPartition("t", 1))
    assert flow.at(1).outcomes == {T0: CheckpointOutcome.NO_SYNC}


def test_no_checkpoint_for_topic_with_null_offset_and_metadata() -> None:
    flow = Flow()
    flow.sync(1, 1)
    assert flow.checkpointer.checkpoints_for_group("g", {T0: None}) == CheckpointResult(
        checkpoints=(), outcomes={T0: CheckpointOutcome.NOT_COMMITTED}
    )


def test_checkpoint_records_monotonic_if_store_rewinds() -> None:
    flow = Flow()
    flow.sync(11, 4)
    flow.sync(12, 5)
    assert flow.emitted(13) == 6
    for step in range(1, 6):
        flow.sync(12 + step * 20, 5 + step * 20)
    assert flow.at(13).outcomes == {T0: CheckpointOutcome.WOULD_REWIND}
    assert flow.emitted(12) is not None, "the group itself went back"


def test_checkpoints_task_restart_uses_existing_checkpoints() -> None:
    first = Flow()
    for offset in (100, 200, 300):
        first.sync(offset, offset)
    (before,) = first.at(250).checkpoints
    assert before.downstream == 201
    again = Flow(memory=loaded(before))
    for offset in range(175, 476, 50):
        again.sync(offset, offset)
    assert again.at(250).outcomes == {T0: CheckpointOutcome.WOULD_REWIND}
    assert again.emitted(370) is None
    assert again.emitted(400) == 376


def test_checkpoint_store_initialized() -> None:
    flow = Flow(memory=CheckpointStore("A.checkpoints.internal"))
    flow.sync(1, 1)
    assert flow.at(1).outcomes == {T0: CheckpointOutcome.NOT_LOADED}
    assert flow.memory.load({"g"}, [])
    assert flow.emitted(1) == 1


def test_an_offset_without_checkpoint_has_its_reason() -> None:
    flow = Flow(exclude=("hidden",))
    hidden = TopicPartition("hidden", 0)
    flow.sync(10, 10)
    flow.sync(10, 10, hidden)
    assert flow.at(10, hidden).outcomes == {hidden: CheckpointOutcome.TOPIC_FILTERED}
    assert flow.at(9).outcomes == {T0: CheckpointOutcome.TOO_OLD}
    assert flow.at(10).outcomes == {T0: CheckpointOutcome.EMITTED}
    assert flow.at(10).outcomes == {T0: CheckpointOutcome.UNCHANGED}
    unread = OffsetSyncStore()
    waiting = Checkpointer(
        SourceAndTarget("a", "b"),
        DefaultReplicationPolicy(),
        DefaultTopicFilter.of([".*"], []),
        OffsetTranslator(unread, {}),
        loaded(),
    )
    assert waiting.checkpoints_for_group("g", {T0: OffsetAndMetadata(1)}).outcomes == {
        T0: CheckpointOutcome.NOT_READY
    }


def test_every_outcome_has_its_own_text() -> None:
    assert len({outcome.value for outcome in CheckpointOutcome}) == len(CheckpointOutcome)


def test_read_checkpoints_topic(caplog: pytest.LogCaptureFixture) -> None:
    """Upstream's CheckpointStoreTest: own groups only; the last record wins; skip invalid ones."""
    memory = CheckpointStore("A.checkpoints.internal")
    records = [
        checkpoint("group1", 1, 11).encode(),
        checkpoint("group3", 7, 77).encode(),
        RecordBytes(b"", b""),
        RecordBytes(checkpoint("group1", 1, 11).encode().key, None),
        checkpoint("group2", 3, 33).encode(),
        checkpoint("group1", 2, 22, "m").encode(),
    ]
    assert memory.load({"group1", "group2"}, records)
    assert memory.is_loaded
    assert memory.groups() == ("group1", "group2")
    assert memory.of_group("group1") == {REMOTE: checkpoint("group1", 2, 22, "m")}
    assert memory.of_group("group2") == {REMOTE: checkpoint("group2", 3, 33)}
    assert memory.of_group("group3") == {}
    ignored = "Ignored a record of checkpoints topic A.checkpoints.internal: "
    assert [text.startswith(ignored) for text in caplog.messages] == [True, True]


@pytest.mark.parametrize(
    ("error", "level"),
    [
        (ClusterUnavailable("target", "down"), logging.INFO),
        (NotAuthorized("target", "no READ"), logging.WARNING),
    ],
    ids=["unavailable", "unauthorized"],
)
def test_read_checkpoints_topic_error(
    error: ClusterError, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    def failing() -> Iterator[RecordBytes]:
        yield checkpoint("group1", 1, 1).encode()
        raise error

    memory = CheckpointStore("A.checkpoints.internal")
    with caplog.at_level(logging.INFO):
        assert not memory.load({"group1"}, failing())
    assert memory.groups() == ()
    assert memory.is_loaded
    assert [record.levelno for record in caplog.records] == [level]
    assert "Checkpoints topic A.checkpoints.internal cannot be read" in caplog.messages[0]


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9), st.integers(0, 9)), max_size=40),
    st.booleans(),
)
def test_checkpoints_of_a_group_that_moves_forward_never_go_back(
    script: list[tuple[int, int, int]], with_runs: bool
) -> None:
    """Some syncs are lost, the group is behind the copy, and maps lack their second run."""
    flow = Flow()
    runs = RunMap()
    end = position = 0
    emitted = []
    for length, hole, advance in script:
        if with_runs:
            runs.append(end + hole, end + hole, length)
            if len(runs) > 4:
                first, _, *later = runs
                runs = RunMap.restore([first, *later], runs.known_from, coarse_runs=1)
            flow.runs[T0] = runs
        if hole % 3:
            flow.sync(end + hole, end + hole)
        end += hole + length
        position = min(end, position + advance)
        emitted += [c.downstream for c in flow.at(position).checkpoints]
    assert emitted == sorted(set(emitted))

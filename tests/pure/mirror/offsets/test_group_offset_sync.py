"""The offsets that a checkpoint task writes to groups of the target."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.mirror.offsets.group_offset_sync import (
    GroupOffsetOutcome,
    GroupOffsetWrite,
    TargetGroup,
    TargetGroupState,
    plan_group_offset_write,
)
from sparkmirror.mirror.offsets.records import Checkpoint
from sparkmirror.model import OffsetAndMetadata, TopicPartition
from tests.support.golden import golden_json

P0, P1 = TopicPartition("A.t", 0), TopicPartition("A.t", 1)
ABSENT = TargetGroup(state=TargetGroupState.ABSENT, committed={})
IN_USE = TargetGroup(state=TargetGroupState.IN_USE, committed={})


def checkpoints(*downstream: tuple[TopicPartition, int]) -> dict[TopicPartition, Checkpoint]:
    return {
        partition: Checkpoint(group="g", partition=partition, upstream=0, downstream=offset)
        for partition, offset in downstream
    }


def empty(*committed: tuple[TopicPartition, int | None]) -> TargetGroup:
    positions = {
        p: None if offset is None else OffsetAndMetadata(offset) for p, offset in committed
    }
    return TargetGroup(state=TargetGroupState.EMPTY, committed=positions)


def written(write: GroupOffsetWrite) -> dict[TopicPartition, int]:
    return {partition: position.offset for partition, position in write.offsets.items()}


VECTORS = golden_json("vectors/checkpoints.json")["group_offset_sync"]


@pytest.mark.parametrize("safely", [False, True])
def test_30_recorded_rounds_write_the_recorded_offsets(safely: bool) -> None:
    """The recordings have only empty and absent groups, so `safely` changes nothing."""
    assert len(VECTORS) == 30
    for vector in VECTORS:
        result = {}
        for group, emitted in recorded_checkpoints(vector).items():
            write = plan_group_offset_write(emitted, recorded_group(vector, group), safely=safely)
            if write.offsets:
                result[group] = {
                    str(partition): [position.offset, position.metadata]
                    for partition, position in write.offsets.items()
                }
        assert result == vector["written"]


def recorded_checkpoints(vector: dict[str, Any]) -> dict[str, dict[TopicPartition, Checkpoint]]:
    found: dict[str, dict[TopicPartition, Checkpoint]] = {}
    for group, name, offset, metadata in vector["checkpoints_group_partition_downstream_metadata"]:
        partition = TopicPartition.parse(name)
        found.setdefault(group, {})[partition] = Checkpoint(
            group=group, partition=partition, upstream=0, downstream=offset, metadata=metadata
        )
    return found


def recorded_group(vector: dict[str, Any], group: str) -> TargetGroup:
    rows = [r for r in vector["empty_target_groups_group_partition_offset"] if r[0] == group]
    if not rows:
        return ABSENT
    return empty(*((TopicPartition.parse(p), offset) for _, p, offset in rows if p is not None))


def test_sync_offset() -> None:
    """Upstream's MirrorCheckpointTaskTest: idle groups at 100 and 50 follow to 101 and 51."""
    group = empty((P0, 100), (P1, 50))
    assert written(
        plan_group_offset_write(checkpoints((P0, 101), (P1, 51)), group, safely=True)
    ) == {
        P0: 101,
        P1: 51,
    }


def test_sync_offset_for_target_group_with_null_offset_and_metadata() -> None:
    assert written(
        plan_group_offset_write(checkpoints((P0, 101)), empty((P0, None)), safely=True)
    ) == {P0: 101}


def test_an_empty_group_is_never_moved_back() -> None:
    write = plan_group_offset_write(
        checkpoints((P0, 99), (P1, 100)), empty((P0, 100), (P1, 100)), safely=False
    )
    assert written(write) == {}
    assert set(write.outcomes.values()) == {GroupOffsetOutcome.TARGET_AHEAD}


def test_a_group_in_use_is_not_written_if_safely_is_set() -> None:
    emitted = checkpoints((P0, 5))
    assert written(plan_group_offset_write(emitted, IN_USE, safely=False)) == {P0: 5}
    write = plan_group_offset_write(emitted, IN_USE, safely=True)
    assert written(write) == {}
    assert write.outcomes == {P0: GroupOffsetOutcome.GROUP_IN_USE}


def test_a_group_that_does_not_exist_gets_all_offsets() -> None:
    assert written(plan_group_offset_write(checkpoints((P0, 5), (P1, 0)), ABSENT, safely=True)) == {
        P0: 5,
        P1: 0,
    }


@settings(max_examples=40)
@given(
    st.dictionaries(st.integers(0, 3), st.integers(0, 9)),
    st.dictionaries(st.integers(0, 3), st.none() | st.integers(0, 9)),
    st.sampled_from(TargetGroupState),
)
def test_no_offset_goes_back_if_safely_is_set(
    emitted: dict[int, int], standing: dict[int, int | None], presence: TargetGroupState
) -> None:
    committed = {
        TopicPartition("t", n): None if offset is None else OffsetAndMetadata(offset)
        for n, offset in standing.items()
        if presence is not TargetGroupState.ABSENT
    }
    group = TargetGroup(state=presence, committed=committed)
    wanted = checkpoints(*((TopicPartition("t", n), offset) for n, offset in emitted.items()))
    write = plan_group_offset_write(wanted, group, safely=True)
    for partition, position in write.offsets.items():
        before = committed.get(partition)
        assert before is None or before.offset < position.offset
    assert set(write.outcomes) == set(wanted)

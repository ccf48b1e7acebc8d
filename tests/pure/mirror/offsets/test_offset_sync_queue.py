"""When an offset sync is due, and in which order syncs are sent."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.mirror.offsets.offset_sync_queue import OffsetSyncPartitionState, OffsetSyncQueue
from sparkmirror.mirror.offsets.records import OffsetSync
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.model import TopicPartition
from tests.support.golden import golden_json

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def sync(partition: TopicPartition, upstream: int, downstream: int) -> OffsetSync:
    return OffsetSync(partition=partition, upstream=upstream, downstream=downstream)


def delayed(queue: OffsetSyncQueue) -> tuple[OffsetSync, ...]:
    """The syncs that the next commit makes due."""
    after_commit = deepcopy(queue)
    after_commit.promote_delayed()
    return tuple(one for one in after_commit.pending if one not in queue.pending)


def listed(syncs: tuple[OffsetSync, ...] | list[OffsetSync]) -> list[list[Any]]:
    return [[str(s.partition), s.upstream, s.downstream] for s in syncs]


def test_a_sync_is_due_exactly_when_java_sends_one() -> None:
    sequences = golden_json("vectors/offset-sync-partition-state.json")["sequences"]
    assert len(sequences) == 120
    for sequence in sequences:
        state = OffsetSyncPartitionState(sequence["offset_lag_max"])
        for upstream, downstream, due, reset_after, _last_sync in sequence["steps"]:
            assert state.update(upstream, downstream) is due
            if reset_after:
                state.reset()


def test_syncs_are_queued_promoted_and_fired_as_in_java() -> None:
    sequences = golden_json("vectors/offset-sync-writer.json")
    assert len(sequences) == 30
    for sequence in sequences:
        queue = OffsetSyncQueue(sequence["offset_lag_max"], max_in_flight=sequence["max_in_flight"])
        for op in sequence["ops"]:
            assert listed(perform(queue, op)) == op["sent"]
            assert listed(queue.pending) == op["pending"]
            assert sorted(listed(delayed(queue))) == sorted(op["delayed"])


def perform(queue: OffsetSyncQueue, op: dict[str, Any]) -> list[OffsetSync]:
    """Perform one recorded step; return the sent syncs."""
    match op["op"]:
        case "queue":
            partition = TopicPartition.parse(op["partition"])
            queue.queue_record(partition, op["upstream"], op["downstream"])
        case "promote":
            queue.promote_delayed()
        case "ack":
            queue.on_send_complete()
        case "fire":
            return queue.pop_pending()
    return []


def test_offset_sync() -> None:
    """Upstream's MirrorSourceTaskTest: offset.lag.max of 50."""
    state = OffsetSyncPartitionState(50)
    for upstream, downstream, due in [
        (0, 100, True),
        (2, 102, True),
        (3, 152, False),
        (4, 153, True),
        (5, 154, False),
        (6, 203, False),
        (7, 204, True),
        (2, 206, True),
        (3, 207, False),
        (4, 3, True),
        (5, 4, False),
        (7, 6, True),
    ]:
        assert state.update(upstream, downstream) is due
        if due:
            state.reset()
    assert state.update(7, 6)
    assert state.update(8, 7), "due until reset"
    assert state.update(10, 57)
    state.reset()
    assert not state.update(11, 58)


def test_zero_offset_sync() -> None:
    """Upstream's MirrorSourceTaskTest: offset.lag.max of 0 makes every record due."""
    state = OffsetSyncPartitionState(0)
    for upstream, downstream in [
        (0, 100),
        (2, 102),
        (3, 153),
        (4, 154),
        (5, 155),
        (6, 207),
        (2, 0),
    ]:
        assert state.update(upstream, downstream)
        state.reset()


def test_maybe_queue_offset_syncs() -> None:
    """Upstream's OffsetSyncWriterTest."""
    queue = OffsetSyncQueue(2)
    queue.queue_record(T0, 0, 1)
    assert (queue.pending, delayed(queue)) == ((sync(T0, 0, 1),), ())
    queue.queue_record(T0, 1, 2)
    assert (queue.pending, delayed(queue)) == ((sync(T0, 0, 1),), (sync(T0, 1, 2),))


def test_fire_pending_offset_syncs() -> None:
    """Upstream's OffsetSyncWriterTest: one may be in flight; the second waits for the first."""
    queue = OffsetSyncQueue(1, max_in_flight=1)
    queue.queue_record(T0, 1, 100)
    queue.queue_record(T1, 1, 100)
    assert queue.pop_pending() == [sync(T0, 1, 100)]
    assert queue.pop_pending() == []
    queue.on_send_complete()
    assert queue.pop_pending() == [sync(T1, 1, 100)]


def test_promote_delayed_offset_syncs() -> None:
    """Upstream's OffsetSyncWriterTest: a delayed sync replaces the older pending one."""
    queue = OffsetSyncQueue(50)
    queue.queue_record(T0, 0, 100)
    queue.queue_record(T0, 1, 101)
    queue.promote_delayed()
    assert queue.pending == (sync(T0, 1, 101),)
    assert delayed(queue) == ()


def test_send_sync_event() -> None:
    """Upstream's MirrorSourceTaskTest: a record queues and fires, a commit promotes and fires."""
    queue = OffsetSyncQueue(50)
    queue.queue_record(T0, 60, 150)
    assert queue.pop_pending() == [sync(T0, 60, 150)]
    queue.on_send_complete()
    for step in range(1, 6):
        queue.queue_record(T0, 60 + step, 150 + step)
        assert queue.pop_pending() == []
    queue.promote_delayed()
    assert queue.pop_pending() == [sync(T0, 65, 155)]


def test_ten_syncs_may_be_in_flight_by_default() -> None:
    queue = OffsetSyncQueue(0)
    for number in range(12):
        queue.queue_record(TopicPartition("t", number), 0, 0)
    assert len(queue.pop_pending()) == 10
    assert len(queue.pending) == 2


def test_only_a_sync_in_flight_can_complete() -> None:
    with pytest.raises(ValueError, match="in flight"):
        OffsetSyncQueue(0).on_send_complete()


steps = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans()), min_size=1, max_size=40
)


@settings(max_examples=40)
@given(steps, st.integers(0, 5))
def test_sent_syncs_are_correct_and_a_commit_sends_the_last_record(
    moves: list[tuple[int, int, bool]], lag_max: int
) -> None:
    queue = OffsetSyncQueue(lag_max)
    copied, sent = [], []
    upstream = downstream = 0
    for up, down, commits in moves:
        upstream, downstream = upstream + 1 + up, downstream + 1 + down
        copied.append(sync(T0, upstream, downstream))
        queue.queue_record(T0, upstream, downstream)
        if commits:
            queue.promote_delayed()
        for fired in queue.pop_pending():
            sent.append(fired)
            queue.on_send_complete()
        if commits:
            assert sent[-1] == copied[-1]
    assert set(sent) <= set(copied)
    assert sent[0] == copied[0]
    assert sent == sorted(sent, key=lambda s: s.upstream)


runs = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(1, 30), st.booleans()),
    min_size=1,
    max_size=15,
)


@settings(max_examples=40)
@given(runs, st.integers(0, 12))
def test_a_run_is_queued_as_its_records_one_by_one(
    script: list[tuple[int, int, int, bool]], lag_max: int
) -> None:
    whole, single = OffsetSyncQueue(lag_max), OffsetSyncQueue(lag_max)
    upstream = downstream = 0
    for up, down, length, fires in script:
        upstream, downstream = upstream + up, downstream + down
        whole.queue_run(T0, OffsetRun(upstream, downstream, length))
        for _ in range(length):
            single.queue_record(T0, upstream, downstream)
            upstream, downstream = upstream + 1, downstream + 1
        assert (whole.pending, delayed(whole)) == (single.pending, delayed(single))
        if fires:
            assert whole.pop_pending() == single.pop_pending()

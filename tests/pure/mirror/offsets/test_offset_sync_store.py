"""The 64 slots: Java's answers, its invariants, and how many syncs one insertion drops."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from sparkmirror.mirror.offsets.offset_sync_store import (
    SLOTS,
    TOO_OLD,
    OffsetSyncStore,
    broken_invariants,
)
from sparkmirror.mirror.offsets.records import OffsetSync
from sparkmirror.model import TopicPartition
from tests.support.golden import golden_lines

T0, T1 = TopicPartition("topic1", 2), TopicPartition("topic1", 3)


def sync(upstream: int, downstream: int, partition: TopicPartition = T0) -> OffsetSync:
    return OffsetSync(partition=partition, upstream=upstream, downstream=downstream)


def started(syncs: Iterable[OffsetSync] = (), *, must_read_to_end: bool = False) -> OffsetSyncStore:
    """Return a store that has read these syncs from the topic."""
    store = OffsetSyncStore(must_read_to_end=must_read_to_end)
    for found in syncs:
        store.add(found)
    store.mark_read_to_end()
    return store


def kept(store: OffsetSyncStore) -> list[int]:
    """The upstream offsets of the distinct syncs, oldest first."""
    return sorted({s.upstream for s in store.slots(T0) or ()})


def translated(store: OffsetSyncStore, *upstream: int) -> list[int | None]:
    return [store.translate_downstream(T0, offset) for offset in upstream]


class Replay:
    """Runs one recorded sequence against a store."""

    def __init__(self, sequence: dict[str, Any]) -> None:
        self.partitions = [TopicPartition.parse(text) for text in sequence["partitions"]]
        self.topic: list[OffsetSync] = []
        self.store = OffsetSyncStore(must_read_to_end=True)

    def perform(self, event: dict[str, Any]) -> None:
        getattr(self, event["op"])(event)

    def read(self, item: list[int]) -> OffsetSync:
        return sync(item[1], item[2], self.partitions[item[0]])

    def start(self, event: dict[str, Any]) -> None:
        self.topic += [self.read(item) for item in event["syncs"]]
        self.store = started(self.topic, must_read_to_end=event["must_read_to_end"])

    def restart(self, event: dict[str, Any]) -> None:
        found = self.topic
        if event["replay"] != "all syncs so far":
            found = list({s.partition: s for s in self.topic}.values())
        assert len(found) == event["syncs"]
        self.store = started(found, must_read_to_end=event["must_read_to_end"])

    def sync(self, event: dict[str, Any]) -> None:
        self.topic.append(self.read(event["sync"]))
        self.store.add(self.topic[-1])

    def query(self, event: dict[str, Any]) -> None:
        partition = self.partitions[event["partition"]]
        assert self.store.translate_downstream(partition, event["upstream"]) == event["result"]

    def queries(self, event: dict[str, Any]) -> None:
        partition = self.partitions[event["partition"]]
        for upstream, result in event["upstream_result"]:
            assert self.store.translate_downstream(partition, upstream) == result

    def slots(self, event: dict[str, Any]) -> None:
        found = self.store.slots(self.partitions[event["partition"]])
        if event["slots"] is None:
            assert found is None
            return
        assert found is not None
        expected: list[tuple[int, int]] = []
        starts = [*event["slots"], [SLOTS]]
        for (start, upstream, downstream), (end, *_) in zip(starts, starts[1:], strict=False):
            expected += [(upstream, downstream)] * (end - start)
        assert [(s.upstream, s.downstream) for s in found] == expected
        assert broken_invariants(found) == []


def test_130_recorded_sequences_give_the_recorded_answers() -> None:
    sequences = golden_lines("vectors/offset-sync-store.jsonl")
    assert len(sequences) == 130
    for sequence in sequences:
        replay = Replay(sequence)
        for event in sequence["events"]:
            replay.perform(event)


def test_offset_translation() -> None:
    store = started([sync(100, 200)])
    assert translated(store, 150) == [201]
    store.add(sync(150, 251))
    assert translated(store, 150, 5) == [251, TOO_OLD]
    store.add(sync(200, 10))
    assert translated(store, 200) == [10]
    store.add(sync(20, 20))
    assert translated(store, 20) == [20]


def test_no_translation_if_store_not_started() -> None:
    store = OffsetSyncStore(must_read_to_end=True)
    assert translated(store, 0, 100, 200) == [None, None, None]
    store.add(sync(100, 200))
    assert translated(store, 0, 100, 200) == [None, None, None]
    store.mark_read_to_end()
    assert store.is_ready
    assert translated(store, 0, 100, 200) == [TOO_OLD, 200, 201]


def test_no_translation_if_no_offset_sync() -> None:
    assert translated(started(), 0, 1) == [None, None]
    assert started([sync(1, 1, T1)]).translate_downstream(T0, 1) is None


def test_past_offset_translation() -> None:
    early = [sync(n, n) for n in range(0, 1001, 10)]
    store = started(early, must_read_to_end=True)
    assert translated(store, 999, 1000, 1001, 1002) == [TOO_OLD, 1000, 1001, 1001]
    for n in range(1010, 10001, 10):
        store.add(sync(n, n))
    assert kept(store) == [1000, 4840, 6760, 8680, 9160, 9640, 9880, 9940, 9970, 9990, 10000]
    store.add(sync(1500, 11000))
    assert translated(store, 1499, 1500, 2000) == [TOO_OLD, 11000, 11001]


def test_past_offset_translation_without_initialization_read_to_end() -> None:
    store = started([sync(n, n) for n in range(0, 1001, 10)])
    assert translated(store, 0, 1, 479, 480, 719, 720, 999, 1000) == [
        0, 1, 1, 480, 481, 720, 991, 1000,
    ]  # fmt: skip
    for n in range(1000, 10001, 10):
        store.add(sync(n, n))
    assert kept(store) == [0, 3840, 7680, 8640, 9120, 9600, 9840, 9900, 9960, 9990, 10000]
    store.add(sync(1500, 11000))
    assert translated(store, 1499, 1500, 2000) == [TOO_OLD, 11000, 11001]


def test_the_example_of_the_module_is_correct() -> None:
    store = started([sync(n, n) for n in range(0, 1001, 100)])
    slots = store.slots(T0)
    assert slots is not None
    assert [s.upstream for s in slots] == [1000] * 8 + [900, 800, 400] + [0] * 53


def assert_expires_at_most(limit: int, syncs: Iterable[OffsetSync]) -> None:
    """Insert all; the invariants hold each time, and no insertion drops more than `limit` syncs."""
    store = started()
    before: set[OffsetSync] = set()
    for added in syncs:
        store.add(added)
        slots = store.slots(added.partition)
        assert slots is not None
        assert slots[0] is added, "A"
        assert broken_invariants(slots) == [], "B and C"
        after = set(slots)
        assert min(after, key=lambda s: s.upstream) is slots[-1], "D"
        assert len(before - after) <= limit
        before = after


@settings(max_examples=20)
@given(st.integers(1, 2**40), st.integers(0, 2**40))
@example(1, 0)
@example(100, 64)
def test_consistently_spaced_syncs(step: int, first: int) -> None:
    assert_expires_at_most(1, (sync(first + n * step, n) for n in range(150)))


@settings(max_examples=20)
@given(st.integers(1, 50), st.integers(0, 2**32))
def test_randomly_spaced_syncs(bits: int, seed: int) -> None:
    source = random.Random(seed)
    upstream = 0
    syncs = []
    for n in range(150):
        syncs.append(sync(upstream, n))
        upstream += 1 + source.getrandbits(bits)
    assert_expires_at_most(bits + 2, syncs)


@settings(max_examples=20)
@given(st.lists(st.booleans(), min_size=50, max_size=150))
def test_dropped_syncs_spacing(dropped: list[bool]) -> None:
    """Some syncs are lost, so the next one has twice the distance."""
    upstream = 0
    syncs = []
    for n, lost in enumerate(dropped):
        syncs.append(sync(upstream, n))
        upstream += 200 if lost else 100
    assert_expires_at_most(2, syncs)


gaps = st.lists(st.tuples(st.integers(0, 200), st.integers(1, 60)), min_size=1, max_size=80)


@settings(max_examples=40)
@given(gaps, st.lists(st.integers(0, 20_000), min_size=1, max_size=20))
def test_a_translated_offset_is_never_too_high(
    moves: list[tuple[int, int]], positions: list[int]
) -> None:
    """The syncs are some of the copied records. The exact offset is the next copied record's."""
    store = started()
    copied = []
    upstream = downstream = -1
    for up, down in moves:
        upstream, downstream = upstream + 1 + up, downstream + down
        copied.append(sync(upstream, downstream))
        store.add(copied[-1])
    slots = store.slots(T0)
    assert slots is not None
    assert broken_invariants(slots) == []
    answers = []
    for position in sorted(positions):
        answer = store.translate_downstream(T0, position)
        later = [s.downstream for s in copied if s.upstream >= position]
        assert answer is not None
        assert answer <= (later[0] if later else copied[-1].downstream + 1)
        answers.append(answer)
    assert answers == sorted(answers), "a later position is never translated to an earlier one"


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(-3, 8), st.integers(1, 4)), min_size=1, max_size=80))
def test_invariants_hold_when_records_are_copied_again(moves: list[tuple[int, int]]) -> None:
    store = started()
    upstream, downstream = 10, 0
    for up, down in moves:
        upstream, downstream = max(0, upstream + up), downstream + down
        store.add(sync(upstream, downstream))
        slots = store.slots(T0)
        assert slots is not None
        assert broken_invariants(slots) == []
        assert store.translate_downstream(T0, upstream) == downstream

"""Run map first, offset syncs otherwise, and how an answer was found."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.mirror.offset_sync_store import OffsetSyncStore
from sparkmirror.mirror.offset_syncs import OffsetSyncQueue
from sparkmirror.mirror.records import OffsetSync
from sparkmirror.mirror.runs import RunMap
from sparkmirror.mirror.translation import Found, Translation, Translator
from sparkmirror.model import TopicPartition

T0 = TopicPartition("t", 0)


def store(*pairs: tuple[int, int]) -> OffsetSyncStore:
    syncs = OffsetSyncStore()
    for upstream, downstream in pairs:
        syncs.add(OffsetSync(partition=T0, upstream=upstream, downstream=downstream))
    syncs.reached_end()
    return syncs


def run_map(*runs: tuple[int, int, int]) -> RunMap:
    result = RunMap()
    for run in runs:
        result.append(*run)
    return result


def test_the_run_map_answers_what_it_knows_and_the_syncs_the_rest() -> None:
    translator = Translator(store((5, 15), (90, 100)), {T0: run_map((50, 60, 50))})
    assert translator.translate(T0, 70) == Translation(80, Found.RUN_MAP)
    assert translator.translate(T0, 100) == Translation(110, Found.RUN_MAP)
    assert translator.translate(T0, 49) == Translation(16, Found.OFFSET_SYNC)
    assert translator.translate(T0, 5) == Translation(15, Found.OFFSET_SYNC)
    assert translator.translate(T0, 4) == Translation(None, Found.TOO_OLD)


def test_why_there_is_no_translation() -> None:
    unread = Translator(OffsetSyncStore(), {T0: run_map((50, 60, 1))})
    assert unread.translate(T0, 50) == Translation(60, Found.RUN_MAP)
    assert unread.translate(T0, 4) == Translation(None, Found.NOT_READY)
    assert Translator(store(), {}).translate(T0, 4) == Translation(None, Found.NO_SYNC)
    assert Translator(store(), {T0: RunMap()}).translate(T0, 4).found is Found.NO_SYNC


steps = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(1, 5)), min_size=1, max_size=20
)


@settings(max_examples=30)
@given(steps, st.integers(0, 8), st.integers(0, 19), st.integers(2, 6))
def test_never_ahead_of_the_truth_and_exact_where_mapped(
    runs: list[tuple[int, int, int]], lag_max: int, mapped_from: int, max_runs: int
) -> None:
    """Records are copied; syncs are taken as due; the map is begun some way in, and bounded."""
    copied: list[tuple[int, int]] = []
    queue, syncs, known = OffsetSyncQueue(lag_max), store(), RunMap()
    source = target = 0
    for number, (source_hole, target_hole, length) in enumerate(runs):
        source, target = source + source_hole, target + target_hole
        if number >= mapped_from:
            known.append(source, target, length)
            known.bound(max_runs)
        for _ in range(length):
            copied.append((source, target))
            queue.queue(T0, source, target)
            for sync in queue.fire():
                syncs.add(sync)
                queue.sent()
            source, target = source + 1, target + 1
    translator = Translator(syncs, {T0: known})
    for position in range(source + 2):
        answer, found = translator.translate(T0, position)
        truth = next((t for s, t in copied if s >= position), copied[-1][1] + 1)
        if answer is not None:
            assert answer <= truth
        if found is Found.RUN_MAP and not known.coarse_runs:
            assert answer == truth


def test_behind_the_end_of_a_map_later_syncs_lead_further() -> None:
    syncs, known = store(), RunMap()
    known.append(0, 0, 100)
    syncs.add(OffsetSync(partition=T0, upstream=500, downstream=520))
    translator = Translator(syncs, {T0: known})
    assert translator.translate(T0, 50) == (50, Found.RUN_MAP)
    assert translator.translate(T0, 300) == (100, Found.RUN_MAP)
    assert translator.translate(T0, 500) == (520, Found.OFFSET_SYNC)
    assert translator.translate(T0, 700) == (521, Found.OFFSET_SYNC)

"""Translation uses the run map, otherwise offset syncs, and says which."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.mirror.offsets.offset_sync_queue import OffsetSyncQueue
from sparkmirror.mirror.offsets.offset_sync_store import OffsetSyncStore
from sparkmirror.mirror.offsets.offset_translation import (
    OffsetTranslation,
    OffsetTranslator,
    TranslationOutcome,
)
from sparkmirror.mirror.offsets.records import OffsetSync
from sparkmirror.mirror.offsets.run_map import RunMap
from sparkmirror.model import TopicPartition

T0 = TopicPartition("t", 0)


def store(*pairs: tuple[int, int]) -> OffsetSyncStore:
    syncs = OffsetSyncStore()
    for upstream, downstream in pairs:
        syncs.add(OffsetSync(partition=T0, upstream=upstream, downstream=downstream))
    syncs.mark_read_to_end()
    return syncs


def run_map(*runs: tuple[int, int, int]) -> RunMap:
    result = RunMap()
    for run in runs:
        result.append(*run)
    return result


def test_the_run_map_translates_its_offsets_and_the_syncs_the_others() -> None:
    translator = OffsetTranslator(store((5, 15), (90, 100)), {T0: run_map((50, 60, 50))})
    assert translator.translate(T0, 70) == OffsetTranslation(80, TranslationOutcome.RUN_MAP)
    assert translator.translate(T0, 100) == OffsetTranslation(110, TranslationOutcome.RUN_MAP)
    assert translator.translate(T0, 49) == OffsetTranslation(16, TranslationOutcome.OFFSET_SYNC)
    assert translator.translate(T0, 5) == OffsetTranslation(15, TranslationOutcome.OFFSET_SYNC)
    assert translator.translate(T0, 4) == OffsetTranslation(None, TranslationOutcome.TOO_OLD)


def test_a_missing_translation_has_a_reason() -> None:
    unread = OffsetTranslator(OffsetSyncStore(), {T0: run_map((50, 60, 1))})
    assert unread.translate(T0, 50) == OffsetTranslation(60, TranslationOutcome.RUN_MAP)
    assert unread.translate(T0, 4) == OffsetTranslation(None, TranslationOutcome.NOT_READY)
    assert OffsetTranslator(store(), {}).translate(T0, 4) == OffsetTranslation(
        None, TranslationOutcome.NO_SYNC
    )
    assert (
        OffsetTranslator(store(), {T0: RunMap()}).translate(T0, 4).outcome
        is TranslationOutcome.NO_SYNC
    )


steps = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(1, 5)), min_size=1, max_size=20
)


@settings(max_examples=30)
@given(steps, st.integers(0, 8), st.integers(0, 19), st.booleans())
def test_translation_is_never_too_high_and_exact_where_mapped(
    runs: list[tuple[int, int, int]], lag_max: int, mapped_from: int, coarse: bool
) -> None:
    """The map starts after some records. A coarse map lacks every second run."""
    copied: list[tuple[int, int]] = []
    queue, syncs, known = OffsetSyncQueue(lag_max), store(), RunMap()
    source = target = 0
    for number, (source_gap, target_gap, length) in enumerate(runs):
        source, target = source + source_gap, target + target_gap
        if number >= mapped_from:
            known.append(source, target, length)
        for _ in range(length):
            copied.append((source, target))
            queue.queue_record(T0, source, target)
            for sync in queue.pop_pending():
                syncs.add(sync)
                queue.on_send_complete()
            source, target = source + 1, target + 1
    if coarse:
        kept = list(known)[::2]
        known = RunMap.restore(kept, known.known_from, len(kept))
    translator = OffsetTranslator(syncs, {T0: known})
    for position in range(source + 2):
        answer, found = translator.translate(T0, position)
        truth = next((t for s, t in copied if s >= position), copied[-1][1] + 1)
        if answer is not None:
            assert answer <= truth
        if found is TranslationOutcome.RUN_MAP and not known.coarse_runs:
            assert answer == truth


def test_after_the_end_of_a_map_later_syncs_are_used() -> None:
    syncs, known = store(), RunMap()
    known.append(0, 0, 100)
    syncs.add(OffsetSync(partition=T0, upstream=500, downstream=520))
    translator = OffsetTranslator(syncs, {T0: known})
    assert translator.translate(T0, 50) == (50, TranslationOutcome.RUN_MAP)
    assert translator.translate(T0, 300) == (100, TranslationOutcome.RUN_MAP)
    assert translator.translate(T0, 500) == (520, TranslationOutcome.OFFSET_SYNC)
    assert translator.translate(T0, 700) == (521, TranslationOutcome.OFFSET_SYNC)

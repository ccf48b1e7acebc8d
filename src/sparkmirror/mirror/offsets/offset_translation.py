"""Where a consumer of the source goes on in the target: by run map if there is one, else by syncs.

The run map is exact but only knows what this mirror copied itself since it began to keep one. The
offset syncs reach further back, and further on where Java MirrorMaker 2 has taken over from us, but
are sparse. Neither is ever ahead of the truth, so it does no harm when they take turns; that a
consumer does not go back when the coarser one follows the finer is seen to where checkpoints are
made.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from sparkmirror.mirror.offsets.offset_sync_store import TOO_OLD, OffsetSyncStore
from sparkmirror.mirror.offsets.run_map import RunMap
from sparkmirror.model import TopicPartition


class TranslationOutcome(Enum):
    """How a translation was found, or why there is none."""

    RUN_MAP = "exactly, from the map of copied runs"
    OFFSET_SYNC = "from the nearest offset sync before it"
    TOO_OLD = "the offset is older than the earliest usable offset sync"
    NO_SYNC = "there is no offset sync for the partition yet"
    NOT_READY = "the offset syncs have not been read to their end yet"


class OffsetTranslation(NamedTuple):
    """A downstream position, and how it was found; None if it could not be."""

    downstream: int | None
    outcome: TranslationOutcome


class OffsetTranslator:
    """Translates positions in the partitions of one source cluster."""

    def __init__(self, syncs: OffsetSyncStore, runs: Mapping[TopicPartition, RunMap]) -> None:
        """Look at both as they are at each call; whoever owns them goes on filling them."""
        self._syncs = syncs
        self._runs = runs

    def translate(self, partition: TopicPartition, upstream: int) -> OffsetTranslation:
        """Translate the position `upstream` of a source partition."""
        run_map = self._runs.get(partition)
        exact = None if run_map is None else run_map.translate_downstream(upstream)
        by_syncs = self._by_syncs(partition, upstream)
        if exact is None or run_map is None:
            return by_syncs
        # Behind its end a map only knows where it ends; somebody else may have copied on.
        is_beyond = upstream > (run_map.source_end or 0)
        if is_beyond and by_syncs.downstream is not None and by_syncs.downstream > exact:
            return by_syncs
        return OffsetTranslation(exact, TranslationOutcome.RUN_MAP)

    def _by_syncs(self, partition: TopicPartition, upstream: int) -> OffsetTranslation:
        if not self._syncs.is_ready:
            return OffsetTranslation(None, TranslationOutcome.NOT_READY)
        by_sync = self._syncs.translate_downstream(partition, upstream)
        if by_sync is None:
            return OffsetTranslation(None, TranslationOutcome.NO_SYNC)
        if by_sync == TOO_OLD:
            return OffsetTranslation(None, TranslationOutcome.TOO_OLD)
        return OffsetTranslation(by_sync, TranslationOutcome.OFFSET_SYNC)

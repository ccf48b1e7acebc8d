"""Translates a position of the source to the target: by run map if there is one, else by syncs.

The run map is exact, but covers only the records that this program has copied. The offset syncs are
sparse, but also cover records that Java MirrorMaker 2 has copied, before or after. Neither is ever
too high, so a consumer may get one and then the other. `checkpoints` ensures that a consumer does
not go back when a sync follows a run map.
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
    """A downstream position, None if there is none, and how it was found."""

    downstream: int | None
    outcome: TranslationOutcome


class OffsetTranslator:
    """Translates positions of the partitions of one source cluster.

    The owner of `syncs` and `runs` keeps adding to them; each call uses their current content.
    """

    def __init__(self, syncs: OffsetSyncStore, runs: Mapping[TopicPartition, RunMap]) -> None:
        self._syncs = syncs
        self._runs = runs

    def translate(self, partition: TopicPartition, upstream: int) -> OffsetTranslation:
        """Translate the position `upstream` of a source partition."""
        run_map = self._runs.get(partition)
        exact = None if run_map is None else run_map.translate_downstream(upstream)
        by_syncs = self._by_syncs(partition, upstream)
        if exact is None or run_map is None:
            return by_syncs
        # Java MirrorMaker 2 may have copied records after the end of the map.
        is_beyond = upstream > (run_map.source_end or 0)
        if is_beyond and by_syncs.downstream is not None and by_syncs.downstream > exact:
            return by_syncs
        return OffsetTranslation(exact, TranslationOutcome.RUN_MAP)

    def _by_syncs(self, partition: TopicPartition, upstream: int) -> OffsetTranslation:
        if not self._syncs.is_ready:
            return OffsetTranslation(None, TranslationOutcome.NOT_READY)
        downstream = self._syncs.translate_downstream(partition, upstream)
        if downstream is None:
            return OffsetTranslation(None, TranslationOutcome.NO_SYNC)
        if downstream == TOO_OLD:
            return OffsetTranslation(None, TranslationOutcome.TOO_OLD)
        return OffsetTranslation(downstream, TranslationOutcome.OFFSET_SYNC)

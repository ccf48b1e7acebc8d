"""What was copied, told to those who translate: offset syncs for all, exact maps for ourselves.

The conductor says what tasks have reported and when it writes down positions; this passes it on to
`syncs` and `run_keeping`, as far as the job wants either. Belongs to the conductor's thread.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Self

from sparkmirror.copy.driver.offset_sync_writer import OffsetSyncWriter
from sparkmirror.copy.driver.run_map_store import RunMapCache, RunMapStore
from sparkmirror.copy.driver.tracked_partition import TrackedPartition
from sparkmirror.copy.job import CopyJob
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.model import TopicPartition


class ProgressPublisher:
    """Tells of one job's copying."""

    def __init__(self, syncs: OffsetSyncWriter | None, keeper: RunMapCache | None) -> None:
        self._syncs = syncs
        self._run_maps = keeper

    @classmethod
    def for_job(cls, job: CopyJob, store: RunMapStore | None) -> Self:
        """Tell what the job wants told. Without a store, maps are not kept."""
        syncs = OffsetSyncWriter(job.syncs, job.settings.client_id) if job.syncs else None
        return cls(syncs, RunMapCache(store) if store else None)

    def start(self) -> None:
        """Begin, with the maps that were kept."""
        if self._run_maps:
            self._run_maps.load()
        if self._syncs:
            self._syncs.start()

    def restore(self, places: Mapping[TopicPartition, TrackedPartition]) -> None:
        """Give places that were opened just now their maps back."""
        if self._run_maps:
            self._run_maps.restore(places)

    def on_copied(self, partition: TopicPartition, run: OffsetRun) -> None:
        """A task has reported a run."""
        if self._syncs:
            self._syncs.add_run(partition, run)

    def flush(self, places: Collection[TrackedPartition]) -> None:
        """Positions are about to be written down."""
        if self._run_maps:
            self._run_maps.save(places)
        if self._syncs:
            self._syncs.on_offsets_committed()

    def stop(self) -> None:
        """End."""
        if self._syncs:
            self._syncs.stop()
        if self._run_maps:
            self._run_maps.close()

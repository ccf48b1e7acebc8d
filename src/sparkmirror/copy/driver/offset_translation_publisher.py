"""Publishes progress for offset translation: offset syncs (as MirrorMaker 2) and exact run maps.

Passes what tasks reported to `offset_sync_writer` and `run_map_store`, if the job has them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Self

from sparkmirror.copy.driver.offset_sync_writer import OffsetSyncWriter
from sparkmirror.copy.driver.run_map_store import RunMapCache, RunMapStore
from sparkmirror.copy.driver.tracked_partition import TrackedPartition
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.settings import CopySettings
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.model import TopicPartition


class OffsetTranslationPublisher:
    """Publishes the progress of one job. Belongs to the conductor's thread."""

    def __init__(
        self,
        syncs: OffsetSyncWriter | None,
        run_maps: RunMapCache | None,
        *,
        is_shared: bool = False,
    ) -> None:
        """`is_shared`: every partition gets the map that is stored after its last owner's end."""
        self._syncs = syncs
        self._run_maps = run_maps
        self._is_shared = is_shared

    @classmethod
    def for_job(
        cls, job: CopyJob, store: RunMapStore | None, may_write: Callable[[], bool]
    ) -> Self:
        """Create it for a job. Without a store, run maps are not stored.

        `may_write` says whether the worker is a member of its group.
        """
        syncs = (
            OffsetSyncWriter(job.syncs, job.settings.client_id, may_write) if job.syncs else None
        )
        return cls(syncs, RunMapCache(store) if store else None, is_shared=job.is_shared)

    def start(self) -> None:
        """Load the stored run maps, unless `restore` does, and start the offset sync writer."""
        if self._run_maps and not self._is_shared:
            self._run_maps.load()
        if self._syncs:
            self._syncs.start()

    def restore(
        self,
        partitions: Mapping[TopicPartition, TrackedPartition],
        unsettled: Iterable[TrackedPartition],
    ) -> None:
        """Give partitions that have got their first lease their stored run maps.

        `unsettled` has all partitions whose map another conductor may have extended.
        """
        if self._run_maps is None:
            return
        self._run_maps.restore(partitions)
        moved = [
            tracked
            for tracked in unsettled
            if tracked.needs_run_map and tracked.lease and not tracked.needs_resume_point
        ]
        if moved:
            self._run_maps.reload(moved)

    def forget(self, partition: TopicPartition) -> None:
        """Drop the offset syncs of a partition that another conductor has taken."""
        if self._syncs:
            self._syncs.forget(partition)

    def on_copied(self, partition: TopicPartition, run: OffsetRun) -> None:
        """Publish a run that a task has reported."""
        if self._syncs:
            self._syncs.add_run(partition, run)

    def flush(self, partitions: Collection[TrackedPartition]) -> None:
        """Save run maps and make delayed syncs due. Call before the ledger is written."""
        if self._run_maps:
            self._run_maps.save(partitions)
        if self._syncs:
            self._syncs.on_offsets_committed()

    def sync_problem(self, settings: CopySettings) -> str:
        """Return why offset syncs cannot be written now; empty if they can."""
        return self._syncs.problem(settings) if self._syncs else ""

    def run_map_problem(self) -> str:
        """Return why run maps cannot be stored now; empty if they can."""
        return self._run_maps.problem() if self._run_maps else ""

    def cancel(self) -> None:
        """End the running call and all later ones with CallCancelled. Any thread may call this."""
        if self._run_maps:
            self._run_maps.cancel()

    def stop(self) -> None:
        """Stop the offset sync writer and close the store."""
        if self._syncs:
            self._syncs.stop()
        if self._run_maps:
            self._run_maps.close()

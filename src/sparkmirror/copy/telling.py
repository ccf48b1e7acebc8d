"""What was copied, told to those who translate: offset syncs for all, exact maps for ourselves.

The conductor says what tasks have reported and when it writes down positions; this passes it on to
`syncs` and `run_keeping`, as far as the job wants either. Belongs to the conductor's thread.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Self

from sparkmirror.copy.job import Job
from sparkmirror.copy.place import Place
from sparkmirror.copy.run_keeping import RunKeeper, RunStore
from sparkmirror.copy.syncs import SyncWriter
from sparkmirror.mirror.runs import Run
from sparkmirror.model import TopicPartition


class Telling:
    """Tells of one job's copying."""

    def __init__(self, syncs: SyncWriter | None, keeper: RunKeeper | None) -> None:
        self._syncs = syncs
        self._keeper = keeper

    @classmethod
    def of(cls, job: Job, store: RunStore | None) -> Self:
        """Tell what the job wants told. Without a store, maps are not kept."""
        syncs = SyncWriter(job.syncs, job.settings.client_id) if job.syncs else None
        return cls(syncs, RunKeeper(store) if store else None)

    def start(self) -> None:
        """Begin, with the maps that were kept."""
        if self._keeper:
            self._keeper.load()
        if self._syncs:
            self._syncs.start()

    def restore(self, places: Mapping[TopicPartition, Place]) -> None:
        """Give places that were opened just now their maps back."""
        if self._keeper:
            self._keeper.restore(places)

    def copied(self, partition: TopicPartition, run: Run) -> None:
        """A task has reported a run."""
        if self._syncs:
            self._syncs.copied(partition, run)

    def flush(self, places: Collection[Place]) -> None:
        """Positions are about to be written down."""
        if self._keeper:
            self._keeper.save(places)
        if self._syncs:
            self._syncs.committed()

    def stop(self) -> None:
        """End."""
        if self._syncs:
            self._syncs.stop()
        if self._keeper:
            self._keeper.close()

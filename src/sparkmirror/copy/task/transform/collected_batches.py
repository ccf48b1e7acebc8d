"""What a converter collects records in, until they are queued as batches for the target.

`transformed_batches` for one remote topic, `routed_batches` for records that go to several topics.
"""

from __future__ import annotations

from typing import Protocol

from sparkmirror.copy.task.batch_converter import UncopyableRecord
from sparkmirror.copy.task.produce.partition_queue import PartitionQueue
from sparkmirror.copy.task.transform.batch_transform import RecordOutcomes
from sparkmirror.copy.task.transform.dropped_records import DroppedRecords


class CollectedBatches(Protocol):
    """Records of one partition that are not queued yet; empty between two fetch responses."""

    @property
    def dropped(self) -> DroppedRecords:
        """The records that are not copied."""
        ...

    def position(self, queue: PartitionQueue) -> int:
        """The next source offset to read."""
        ...

    def skip_to(self, next_source_offset: int) -> None:
        """Record that no more record is copied before this source offset."""
        ...

    def collect(
        self,
        queue: PartitionQueue,
        outcomes: RecordOutcomes,
        codec_id: int,
        dead_letter_offset: int | None = None,
    ) -> UncopyableRecord | None:
        """Collect what is kept of one fetched batch with this codec.

        What lies before `dead_letter_offset` is queued at once: it does not wait for a dead letter.
        Returns the first record that is too large, if any: then the rest is not collected.
        """
        ...

    def flush(self, queue: PartitionQueue) -> UncopyableRecord | None:
        """Queue what is collected, and advance; return the first record that is too large."""
        ...

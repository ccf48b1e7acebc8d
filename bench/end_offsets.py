"""Counts the records that a system has copied, by the end offsets on the target."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

from bench.system_process import SystemProcess
from bench.topics import make_router
from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.errors import ClusterTimeout, ClusterUnavailable, LabError
from sparkmirror.model import TopicPartition
from sparkmirror.wire.protocol.topics.offsets import LATEST, list_offsets

_ANSWER_S = 0.5


class EndOffsets:
    """The end offsets of some partitions, which may not exist yet."""

    def __init__(self, access: ClusterAccess, partitions: Sequence[TopicPartition]) -> None:
        self._router = make_router(access)
        self._partitions = dict.fromkeys(partitions, LATEST)
        self._last_known: dict[TopicPartition, int] = {}

    def total_records(self) -> int:
        """Return the sum of the end offsets.

        A partition whose leader does not answer in time counts with its last known offset.
        """
        with contextlib.suppress(ClusterUnavailable, ClusterTimeout):
            for partition, result in list_offsets(
                self._router, self._partitions, timeout_s=_ANSWER_S
            ).items():
                if result.value:
                    self._last_known[partition] = result.value.offset
        return sum(self._last_known.values())

    def close(self) -> None:
        """Close the connections."""
        self._router.close()


def wait_for_records(
    ends: EndOffsets, process: SystemProcess, wanted: int, timeout_s: float, poll_interval_s: float
) -> int:
    """Wait until the system has copied `wanted` records; return the number of copied records.

    Blocks. Raises LabError if the system exits or the time is over.
    """
    deadline = time.monotonic() + timeout_s
    while (found := ends.total_records()) < wanted:
        process.ensure_running()
        if time.monotonic() > deadline:
            raise LabError(f"{process.system} copied {found:,} records in {timeout_s:.0f} s")
        time.sleep(poll_interval_s)
    return found

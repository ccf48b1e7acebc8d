"""How far a contestant is: the ends of its topics on the target, as they grow."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

from bench.system_process import SystemProcess
from bench.topics import make_router
from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.errors import ClusterTimeout, ClusterUnavailable, LabError
from sparkmirror.model import TopicPartition
from sparkmirror.wire.protocol.offsets import LATEST, list_offsets

_ANSWER_S = 0.5


class EndOffsets:
    """How many records there are in some partitions, which may not exist yet."""

    def __init__(self, access: ClusterAccess, partitions: Sequence[TopicPartition]) -> None:
        self._router = make_router(access)
        self._partitions = dict.fromkeys(partitions, LATEST)
        self._last_known: dict[TopicPartition, int] = {}

    def total_records(self) -> int:
        """Ask the brokers; where they do not answer in time, what they said before holds."""
        with contextlib.suppress(ClusterUnavailable, ClusterTimeout):
            for partition, said in list_offsets(
                self._router, self._partitions, timeout_s=_ANSWER_S
            ).items():
                if said.value:
                    self._last_known[partition] = said.value.offset
        return sum(self._last_known.values())

    def close(self) -> None:
        """Hang up."""
        self._router.close()


def wait_for_records(
    ends: EndOffsets, racer: SystemProcess, wanted: int, within_s: float, pause_s: float
) -> int:
    """Wait until there are so many records; return how many there are then."""
    deadline = time.monotonic() + within_s
    while (found := ends.total_records()) < wanted:
        racer.ensure_running()
        if time.monotonic() > deadline:
            raise LabError(f"{racer.system} copied {found:,} records in {within_s:.0f} s")
        time.sleep(pause_s)
    return found

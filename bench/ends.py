"""How far a contestant is: the ends of its topics on the target, as they grow."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

from bench.racer import Racer
from bench.topics import router_of
from sparkmirror.cluster.access import Access
from sparkmirror.errors import ClusterTimeout, ClusterUnavailable, LabError
from sparkmirror.model import TopicPartition
from sparkmirror.wire.offsets import LATEST, list_offsets

_ANSWER_S = 0.5


class Ends:
    """How many records there are in some partitions, which may not exist yet."""

    def __init__(self, access: Access, partitions: Sequence[TopicPartition]) -> None:
        self._router = router_of(access)
        self._asked = dict.fromkeys(partitions, LATEST)
        self._found: dict[TopicPartition, int] = {}

    def total(self) -> int:
        """Ask the brokers; where they do not answer in time, what they said before holds."""
        with contextlib.suppress(ClusterUnavailable, ClusterTimeout):
            for partition, said in list_offsets(
                self._router, self._asked, timeout_s=_ANSWER_S
            ).items():
                if said.value:
                    self._found[partition] = said.value.offset
        return sum(self._found.values())

    def close(self) -> None:
        """Hang up."""
        self._router.close()


def wait_for_records(ends: Ends, racer: Racer, wanted: int, within_s: float, pause_s: float) -> int:
    """Wait until there are so many records; return how many there are then."""
    deadline = time.monotonic() + within_s
    while (found := ends.total()) < wanted:
        racer.check()
        if time.monotonic() > deadline:
            raise LabError(f"{racer.who} copied {found:,} records in {within_s:.0f} s")
        time.sleep(pause_s)
    return found

"""The ends of remote logs that no fence protects: such a log may still grow.

A comparison of both logs may take long, and thousands of partitions are compared one after the
other. So the end of a log is queried shortly before that log is compared, together with those of
all partitions that follow. Decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from sparkmirror.copy.driver.fencing.fence import LogEnd
from sparkmirror.model import TopicPartition
from sparkmirror.wire.protocol.error_codes import ErrorCode

QueryEnds = Callable[[Iterable[TopicPartition]], Mapping[TopicPartition, int | ErrorCode]]

MAX_AGE_S = 1.0
"""Before a comparison an end that is older is queried again."""


class UnfencedLogEnds:
    """The ends of the logs of partitions that are taken over without a fence."""

    def __init__(
        self,
        partitions: Iterable[TopicPartition],
        query: QueryEnds,
        clock: Callable[[], float],
    ) -> None:
        self._remaining = list(partitions)
        self._query = query
        self._clock = clock
        self._ends: Mapping[TopicPartition, int | ErrorCode] = {}
        self._queried_at = 0.0

    def find(self, partition: TopicPartition) -> LogEnd | ErrorCode:
        """Return the end of a log. Blocks. Raises ClusterError."""
        known = self._ends.get(partition)
        is_old = self._clock() - self._queried_at > MAX_AGE_S
        if known is None or (is_old and not isinstance(known, ErrorCode)):
            # A partition without a leader keeps its error: it makes every query slow.
            asked = [one for one in self._remaining if not self._has_error(one)]
            self._ends = {**self._ends, **self._query(asked)}
            self._queried_at = self._clock()
        self._remaining.remove(partition)
        end = self._ends[partition]
        return end if isinstance(end, ErrorCode) else LogEnd(None, end)

    def _has_error(self, partition: TopicPartition) -> bool:
        return isinstance(self._ends.get(partition), ErrorCode)

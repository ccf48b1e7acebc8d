"""A fetch session: the broker keeps the partitions of earlier requests (KIP-227).

    client                                broker
    (0, 0)    all partitions      ──▶     keeps them, responds with a session id
    (id, 1)   changed partitions  ──▶     responds with partitions that have news
    (id, 2)   ...

A thousand partitions of which three have news cost three, on both sides. Any error ends the
session, and the next request names all partitions: a session saves work and changes no result. A
broker with too many sessions gives none; then every request names all partitions.

One request at a time: session epochs must arrive in order. Has no socket.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.fetch import FetchPosition, TopicKeyPartition

_MAX_EPOCH: Final = 0x7FFFFFFF
SESSION_ERRORS: Final = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
"""Errors of a broker that does not have the session, or has it at another epoch."""


@dataclass(slots=True)
class FetchSession:
    """One session with one broker. `on_response` or `reset` follows every request."""

    _id: int = 0
    _epoch: int = 0
    _session_partitions: dict[TopicKeyPartition, FetchPosition] = field(default_factory=dict)
    """The partitions that the broker keeps, with their positions."""
    _requested: dict[TopicKeyPartition, FetchPosition] = field(default_factory=dict)

    @property
    def id_and_epoch(self) -> tuple[int, int]:
        """The session id and epoch of the next request."""
        return (self._id, self._epoch)

    def next_request(
        self, wanted: Mapping[TopicKeyPartition, FetchPosition]
    ) -> tuple[list[FetchPosition], tuple[TopicKeyPartition, ...]]:
        """Return the positions that a request must name, and the partitions it must remove."""
        self._requested = dict(wanted)
        if not self._id:
            return list(wanted.values()), ()
        changed = [
            position
            for partition, position in wanted.items()
            if self._session_partitions.get(partition) != position
        ]
        return changed, tuple(
            partition for partition in self._session_partitions if partition not in wanted
        )

    @property
    def is_established(self) -> bool:
        """Whether the broker keeps a session."""
        return self._id != 0

    def next_incremental_request(
        self,
        moved: Mapping[TopicKeyPartition, FetchPosition],
        removed: Iterable[TopicKeyPartition] = (),
    ) -> tuple[list[FetchPosition], tuple[TopicKeyPartition, ...]]:
        """Return the same as `next_request` for partitions that moved or were added or removed.

        Looks at no other partition. A broker removes a partition that is in both.
        """
        assert self._id
        kept = self._session_partitions
        kept.update(moved)
        forgotten = tuple(
            partition for partition in removed if kept.pop(partition, None) is not None
        )
        self._requested = kept
        return list(moved.values()), forgotten

    def on_response(self, session_id: int) -> None:
        """Record a response without an error. `session_id` 0: the broker keeps no session."""
        if session_id == 0 or session_id != (self._id or session_id):
            self.reset()
            return
        self._id, self._session_partitions = session_id, self._requested
        self._epoch = self._epoch % _MAX_EPOCH + 1

    def reset(self) -> None:
        """Drop the session. The next request names all partitions."""
        self._id = self._epoch = 0
        self._session_partitions, self._requested = {}, {}

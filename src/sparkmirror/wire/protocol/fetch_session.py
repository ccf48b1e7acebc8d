"""A fetch session: what a broker remembers of our requests, so that we need not repeat it.

    we                                          the broker
    (0, 0)    every partition          ──▶      remembers them, answers with a session id
    (id, 1)   what has changed since   ──▶      answers what has changed since
    (id, 2)   ...

A thousand partitions of which three have news cost three, on both sides. Whatever goes wrong ends
the session, and the next request names everything again: nothing depends on it but effort. A
broker with too many sessions gives none, and then every request is a whole one.

One request at a time: the numbers must arrive in order. Knows no socket.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.fetch import FetchPosition, TopicKeyPartition

NEW_SESSION = (0, 0)
_MAX_EPOCH = 0x7FFFFFFF
SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
"""What a broker answers that has forgotten a session, or takes it for another one."""


@dataclass(slots=True)
class FetchSession:
    """One session with one broker. Every `next` is followed by `answered` or `reset`."""

    _id: int = 0
    _epoch: int = 0
    _session_partitions: dict[TopicKeyPartition, FetchPosition] = field(default_factory=dict)
    """What the broker will ask of its log if we say nothing else."""
    _requested: dict[TopicKeyPartition, FetchPosition] = field(default_factory=dict)

    @property
    def id_and_epoch(self) -> tuple[int, int]:
        """The session of the next request."""
        return (self._id, self._epoch)

    def next_request(
        self, wanted: Mapping[TopicKeyPartition, FetchPosition]
    ) -> tuple[list[FetchPosition], tuple[TopicKeyPartition, ...]]:
        """What a request for these partitions must name, and which it must take back."""
        self._requested = dict(wanted)
        if not self._id:
            return list(wanted.values()), ()
        changed = [
            position
            for place, position in wanted.items()
            if self._session_partitions.get(place) != position
        ]
        return changed, tuple(place for place in self._session_partitions if place not in wanted)

    @property
    def is_established(self) -> bool:
        """Whether the broker remembers anything."""
        return self._id != 0

    def next_incremental_request(
        self, moved: Mapping[TopicKeyPartition, FetchPosition]
    ) -> list[FetchPosition]:
        """What a request for the partitions of the last one must name: those that have moved."""
        assert self._id
        self._session_partitions.update(moved)
        self._requested = self._session_partitions
        return list(moved.values())

    def on_response(self, session_id: int) -> None:
        """The broker has answered, without an error, and keeps this session; 0 for none."""
        if session_id == 0 or session_id != (self._id or session_id):
            self.reset()
            return
        self._id, self._session_partitions = session_id, self._requested
        self._epoch = self._epoch % _MAX_EPOCH + 1

    def reset(self) -> None:
        """Begin anew: what the broker remembers, if anything, is not to be relied on."""
        self._id = self._epoch = 0
        self._session_partitions, self._requested = {}, {}

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

from sparkmirror.wire.codes import Code
from sparkmirror.wire.fetch import Place, Position

WANTED = (0, 0)
_LAST_EPOCH = 0x7FFFFFFF
LOST = frozenset(
    {
        Code.FETCH_SESSION_ID_NOT_FOUND,
        Code.INVALID_FETCH_SESSION_EPOCH,
        Code.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
"""What a broker answers that has forgotten a session, or takes it for another one."""


@dataclass(slots=True)
class FetchSession:
    """One session with one broker. Every `next` is followed by `answered` or `reset`."""

    _id: int = 0
    _epoch: int = 0
    _remembered: dict[Place, Position] = field(default_factory=dict)
    """What the broker will ask of its log if we say nothing else."""
    _asked: dict[Place, Position] = field(default_factory=dict)

    @property
    def key(self) -> tuple[int, int]:
        """The session of the next request."""
        return (self._id, self._epoch)

    def next(self, wanted: Mapping[Place, Position]) -> tuple[list[Position], tuple[Place, ...]]:
        """What a request for these partitions must name, and which it must take back."""
        self._asked = dict(wanted)
        if not self._id:
            return list(wanted.values()), ()
        changed = [
            position
            for place, position in wanted.items()
            if self._remembered.get(place) != position
        ]
        return changed, tuple(place for place in self._remembered if place not in wanted)

    @property
    def is_kept(self) -> bool:
        """Whether the broker remembers anything."""
        return self._id != 0

    def go_on(self, moved: Mapping[Place, Position]) -> list[Position]:
        """What a request for the partitions of the last one must name: those that have moved."""
        assert self._id
        self._remembered.update(moved)
        self._asked = self._remembered
        return list(moved.values())

    def answered(self, session_id: int) -> None:
        """The broker has answered, without an error, and keeps this session; 0 for none."""
        if session_id == 0 or session_id != (self._id or session_id):
            self.reset()
            return
        self._id, self._remembered = session_id, self._asked
        self._epoch = self._epoch % _LAST_EPOCH + 1

    def reset(self) -> None:
        """Begin anew: what the broker remembers, if anything, is not to be relied on."""
        self._id = self._epoch = 0
        self._remembered, self._asked = {}, {}

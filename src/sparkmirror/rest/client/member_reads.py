"""Reads the same path of several workers at the same time.

A worker that does not answer costs the timeout once: it is asked again after REPEAT_AFTER_S.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from sparkmirror.connect.distributed.assignment import MemberShare
from sparkmirror.errors import ConnectRestError, MirrorError
from sparkmirror.mirror.connect_topics.connect_json import JsonValue
from sparkmirror.rest.client.inter_worker_requests import READ_TIMEOUT_S

REPEAT_AFTER_S: Final = 5.0
_JOIN_TIMEOUT_S: Final = 2 * READ_TIMEOUT_S + 1.0
"""For a second try with a newer session key."""


class MemberReader(Protocol):
    """Reads a path of another worker."""

    def read(self, worker_url: str, path: str, /) -> JsonValue:
        """Return the JSON of the answer. Raises MirrorError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberAnswers:
    """What the other members of the group answered, and why some did not."""

    answers: Mapping[str, JsonValue] = field(default_factory=dict, repr=False)
    """By worker id."""
    absent: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The reason, by worker id."""


@dataclass(frozen=True, slots=True)
class _Silence:
    """A worker that did not answer."""

    reason: str
    until: float
    """When the worker is asked again, by the monotonic clock."""


class MemberReads:
    """Asks workers, each in a thread of its own. Any thread may call it."""

    def __init__(self, reader: MemberReader, clock: Callable[[], float] = time.monotonic) -> None:
        self._reader = reader
        self._clock = clock
        self._lock = threading.Lock()
        self._silent: dict[str, _Silence] = {}
        """By URL."""

    def read(self, shares: Sequence[MemberShare], path: str) -> MemberAnswers:
        """Return the answers of these workers, and why some did not answer."""
        answers: dict[str, JsonValue] = {}
        absent = self._known_absent(shares)

        def read_one(share: MemberShare) -> None:
            try:
                answers[share.worker_id] = self._reader.read(share.url, path)
            except MirrorError as error:
                absent[share.worker_id] = str(error)
                if not isinstance(error, ConnectRestError):  # else it has answered
                    self._remember(share, str(error))

        asked = [share for share in shares if share.worker_id not in absent]
        threads = [
            threading.Thread(target=read_one, args=[share], name="rest-members", daemon=True)
            for share in asked
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(_JOIN_TIMEOUT_S)
        late = {
            share.worker_id: f"the worker at {share.url} did not answer in time"
            for share in asked
            if share.worker_id not in answers and share.worker_id not in absent
        }
        return MemberAnswers(answers=dict(answers), absent={**absent, **late})

    def _known_absent(self, shares: Sequence[MemberShare]) -> dict[str, str]:
        now = self._clock()
        with self._lock:
            self._silent = {
                url: silence for url, silence in self._silent.items() if silence.until > now
            }
            return {
                share.worker_id: self._silent[share.url].reason
                for share in shares
                if share.url in self._silent
            }

    def _remember(self, share: MemberShare, reason: str) -> None:
        with self._lock:
            self._silent[share.url] = _Silence(reason, self._clock() + REPEAT_AFTER_S)

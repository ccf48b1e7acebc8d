"""A rehearsal: a conductor that has nothing to copy, for trying out Spark itself.

Tasks are welcomed and, unless they are to stay, drained at once. Needs no cluster.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from sparkmirror.copy.counterfoils import Unclaimed
from sparkmirror.copy.job import Job
from sparkmirror.copy.messages import Done, Drain, Hello, Message, Welcome
from sparkmirror.copy.settings import Settings
from sparkmirror.copy.snapshot import Snapshot

NOWHERE = {"bootstrap.servers": "127.0.0.1:1"}


def rehearsed_job(tasks: int) -> Job:
    """A job whose tasks have no partitions."""
    return Job(
        connector="rehearsal",
        group_id="rehearsal",
        settings=Settings(source=NOWHERE, target=NOWHERE),
        offsets_topic="rehearsal",
        remote_topics={},
        tasks=((),) * tasks,
    )


@dataclass(slots=True)
class Rehearsal:
    """Conducts nobody. `counts` tells what happened, by the names of the methods."""

    job: Job
    stay: bool = False
    """Whether tasks stay until their epoch ends."""
    counts: Counter[str] = field(default_factory=Counter)
    _there: dict[Hello, Callable[[Message], None]] = field(default_factory=dict)
    _draining: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> None:
        """There is nothing to be done."""

    def joined(self, hello: Hello, send: Callable[[Message], None]) -> None:
        """Welcome it."""
        with self._lock:
            self.counts["joined"] += 1
            self._there[hello] = send
            send(Welcome(settings=self.job.settings.to_json()))
            if self._draining or not self.stay:
                send(Drain())

    def said(self, hello: Hello, message: Message) -> None:
        """Notice who is done."""
        with self._lock:
            self.counts[message.type] += 1
            if isinstance(message, Done):
                self._there.pop(hello, None)

    def left(self, hello: Hello) -> None:
        """See it off."""
        with self._lock:
            self.counts["left"] += 1
            self._there.pop(hello, None)

    def end_epoch(self) -> None:
        """Drain everybody."""
        with self._lock:
            self.counts["end_epoch"] += 1
            for send in self._there.values():
                send(Drain())

    def drain(self) -> None:
        """Drain everybody, and those who come later."""
        self._draining = True
        self.end_epoch()

    def is_drained(self) -> bool:
        """Whether everybody has gone."""
        with self._lock:
            return self._draining and not self._there

    def set_rate(self, bytes_per_s: int) -> None:
        """Nothing is no faster at any rate; it is only noted."""
        self.counts["rate"] = bytes_per_s

    def replan(self, job: Job) -> None:
        """Nothing is nothing, however it is planned."""
        with self._lock:
            self.counts["replan"] += 1
            self.job = job

    def snapshot(self) -> Snapshot:
        """The counts, as the lanes of a topic that there is not."""
        with self._lock:
            return Snapshot(lanes={"rehearsal": dict(self.counts)})

    def close_books(self, epoch: int, *, landed: bool) -> list[Unclaimed]:
        """Nothing was copied."""
        self.counts["landed" if landed else "failed"] = epoch
        return []

    def failure(self) -> Exception | None:
        """Nothing can go wrong."""
        return None

    def stop(self) -> None:
        """There is nothing to be remembered."""

"""Succession: places whose owner went without a word go on at what it had committed.

The exactly-once counterpart of `takeover`. Nothing is looked for on the target: once the owner's
transactional id is taken, whatever it had not committed is void and it can commit nothing more, so
the offsets topic says where to go on. A task has one id for all its places, so it is taken only
when the task holds none of them any more. Before a place is granted, what may hang in its remote
partition is ended (`hanging`).

Belongs to the conductor's thread.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass, replace

from sparkmirror.copy.attempts import Attempt
from sparkmirror.copy.book import Book
from sparkmirror.copy.clusters import Clusters
from sparkmirror.copy.openings import truncation
from sparkmirror.copy.place import Place, State
from sparkmirror.copy.takeover import Tell
from sparkmirror.copy.terms import Terms
from sparkmirror.wire.codes import Code


@dataclass(slots=True, kw_only=True)
class Succession:
    """Settles doubtful places of a job that copies in transactions."""

    clusters: Clusters
    terms: Terms
    book: Book
    tell: Tell
    lock: threading.Lock

    def settle(self, places: Collection[Place]) -> None:
        """Let places wait to be granted at what was committed, as far as that is certain."""
        doubtful = [place for place in places if place.is_void]
        leasing = {place.owner.task for place in places if place.owner}
        for task in {place.last_task for place in doubtful if not self._is_certain(place)}:
            if task not in leasing:
                self.terms.renew(task)
        certain = [place for place in doubtful if self._is_certain(place)]
        if certain:
            self.book.load()
            with self.lock:
                for place in certain:
                    self._go_on(place)

    def within_term(
        self, attempt: Attempt, mine: list[Place], places: Collection[Place], now: float
    ) -> list[Place]:
        """What an attempt may get, under its term; it gets one when it holds nothing of another."""
        if attempt.term is None and any(place.owner == attempt.hello for place in places):
            return []
        clear = self._cleared(mine, now)
        if clear and attempt.term is None:
            attempt.term = self.terms.take(attempt.hello.task)
        return clear if attempt.term else []

    def _cleared(self, places: list[Place], now: float) -> list[Place]:
        """Those of some waiting places in whose remote partition no transaction hangs."""
        unseen = [place for place in places if place.is_unseen]
        if unseen:
            asked = self.book.committed(unseen)
            clear = self.terms.end_hanging(asked)
            with self.lock:
                for place in unseen:
                    place.is_unseen = place.target in asked and place.target not in clear
                    if place.is_unseen:
                        why = f"target: {place.target} has no leader, or is not there"
                        place.hold(why, now, then=State.WAITING)
            self._find_truncated([place for place in unseen if place.target in clear])
        return [place for place in places if not place.is_unseen]

    def _find_truncated(self, places: list[Place]) -> None:
        """A target that has lost what it had acknowledged is told, and appended to all the same."""
        ends = self.clusters.target_ends(place.target for place in places)
        for place in places:
            lease, end = place.lease, ends[place.target]
            if lease is None or place.is_unopened or isinstance(end, Code):
                continue
            if cut := truncation(place, lease.expected, end):
                self.tell("remote-truncated", place, cut)
                place.settled(replace(lease, expected=end))

    def _is_certain(self, place: Place) -> bool:
        return self.terms.taken_since(place.last_task, place.doubtful_since)

    def _go_on(self, place: Place) -> None:
        """Take the offsets topic at its word; where it says nothing, nothing was committed."""
        entry = self.book.entries.get(place.source)
        assert place.lease is not None
        lease = place.lease
        if entry and entry.position != lease.position:
            place.runs.be_coarse()  # it had committed more than it reported
            lease = replace(lease, position=entry.position)
        if entry and entry.ours:
            ours = entry.ours
            lease = replace(lease, expected=ours.expected, records=ours.records)
            lease = lease.of_epoch(ours.source_epoch)
        place.settled(lease)
        self.tell(
            "takeover",
            place,
            f"what the last owner had not committed is void; going on at source offset"
            f" {lease.position}",
        )

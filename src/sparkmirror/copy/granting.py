"""Granting: places that wait get a lease that fits both logs, and a task attempt gets the lease.

A place that is not opened yet is opened first: what the ledger and both logs say decides whether it
can go on, is doubtful, or has lost something. The rules of a remote topic are asked for once, and
again after something was refused. Blocks; belongs to the conductor's thread.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from sparkmirror.copy.attempts import Attempt
from sparkmirror.copy.book import Book
from sparkmirror.copy.clusters import Clusters
from sparkmirror.copy.events import Events
from sparkmirror.copy.job import OnLoss
from sparkmirror.copy.losses import Loss
from sparkmirror.copy.messages import Grant
from sparkmirror.copy.openings import Opening, Openings
from sparkmirror.copy.place import Place, State
from sparkmirror.copy.settings import target_to_json
from sparkmirror.wire.codes import Code
from sparkmirror.wire.target import Target

AT_ONCE = 500
"""Places opened together: large enough for few requests, small enough to answer in between."""


class Granting:
    """Opens places and grants leases on them."""

    def __init__(
        self, clusters: Clusters, openings: Openings, book: Book, events: Events, on_loss: OnLoss
    ) -> None:
        self._clusters = clusters
        self._openings = openings
        self._book = book
        self._events = events
        self.on_loss = on_loss
        self._rules: dict[str, Target | Code] = {}

    def grant(
        self, attempt: Attempt, places: list[Place], now: float, lock: threading.Lock
    ) -> None:
        """Grant what can be granted of a task's places; the others are held or doubtful."""
        for at in range(0, len(places), AT_ONCE):
            self._grant(attempt, places[at : at + AT_ONCE], now, lock)

    def rules(self, places: Iterable[Place]) -> dict[str, Target | Code]:
        """What the remote topics of these places take, asked for where it is not known."""
        known = {topic for topic, rules in self._rules.items() if isinstance(rules, Target)}
        unknown = {place.target.topic for place in places} - known
        if unknown:
            self._rules |= self._clusters.rules(unknown)
        return self._rules

    def forget_rules(self, topic: str) -> None:
        """Something was refused: the rules of the topic may have changed, or change soon."""
        self._rules.pop(topic, None)

    def _grant(
        self, attempt: Attempt, places: list[Place], now: float, lock: threading.Lock
    ) -> None:
        unopened = [place for place in places if place.is_unopened]
        opened = self._openings.open(unopened, self._book.entries) if unopened else {}
        with lock:
            for place, opening in opened.items():
                self._settle(place, opening, now)
        self.rules(places)
        with lock:
            ready = [place for place in places if self._is_ready(place, now)]
        if not ready:
            return
        self._book.save(ready, is_open=True)
        leases = [place.lease for place in ready if place.lease]
        targets = {place.target.topic: self._rules_for_task(place) for place in ready}
        with lock:
            for place in ready:
                place.grant_to(attempt.hello)
        attempt.send(Grant(leases=leases, targets=targets, term=attempt.term))

    def _settle(self, place: Place, opening: Opening, now: float) -> None:
        place.end = opening.end
        if opening.trouble or opening.lease is None:
            place.hold(opening.trouble, now, then=State.WAITING)
            return
        place.settled(opening.lease)
        if opening.is_doubtful:
            place.is_free(clean=False, now=now)
        if opening.warning:
            self._events.tell("remote-truncated", place, opening.warning)
        if opening.loss:
            self._suffer(place, opening.loss, now)

    def _suffer(self, place: Place, loss: Loss, now: float) -> None:
        """A loss is always told; the policy decides where to go on."""
        position = loss.goes_on_at(self.on_loss)
        decided = "copying stops" if position is None else f"going on at offset {position}"
        self._events.tell(
            loss.kind.value, place, f"{loss.text}; {decided}", (loss.lost_from, loss.lost_to)
        )
        if position is None:
            why = f"{loss.text}; decide with the loss policy"
            place.hold(why, now, then=State.WAITING, forever=True)
        else:
            place.relocated(position)

    def _is_ready(self, place: Place, now: float) -> bool:
        if place.state is not State.WAITING or place.is_unopened:
            return False
        rules = self._rules[place.target.topic]
        if isinstance(rules, Target):
            return True
        place.hold(f"target: {place.target.topic}: {rules}", now, then=State.WAITING)
        return False

    def _rules_for_task(self, place: Place) -> dict[str, object]:
        rules = self._rules[place.target.topic]
        assert isinstance(rules, Target)
        return target_to_json(rules)

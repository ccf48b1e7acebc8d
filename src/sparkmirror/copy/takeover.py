"""Takeover: places whose owner went without a word get a lease that is certainly right.

    1. fence: nobody else can append any more
    2. reconcile: the target's log tells how far the old owner came
    3. the next lease begins behind the fence, at sequence 0

A place that cannot be fenced or matched is held with the reason; all others go on. Where the
transactional id is forbidden, there is no fence: the old identity goes on, and the broker's
compare-and-append alone keeps young data from being doubled. That is said in an event.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sparkmirror.copy.clusters import Clusters
from sparkmirror.copy.fence import Fenced, Fences
from sparkmirror.copy.lease import Identity
from sparkmirror.copy.place import Place, State
from sparkmirror.copy.reconcile import Found, NoMatch, Reconciler
from sparkmirror.errors import ClusterError, MirrorError, NotAuthorized
from sparkmirror.model import TopicPartition
from sparkmirror.wire.codes import Code
from sparkmirror.wire.peek import OutOfRange
from sparkmirror.wire.target import Target

Tell = Callable[[str, Place, str], None]
"""Tells the operator of an event: kind, place, text."""


@dataclass(slots=True)
class Takeover:
    """Settles doubtful places."""

    clusters: Clusters
    fences: Fences
    tell: Tell

    def settle(self, places: list[Place], rules: dict[str, Target | Code], now: float) -> None:
        """Fence and reconcile; afterwards each place waits to be granted, or is held."""
        fenced = self._raise_fence(places)
        for place in places:
            outcome = fenced[place.target]
            topic_rules = rules.get(place.target.topic, Code.UNKNOWN_TOPIC_OR_PARTITION)
            if isinstance(outcome, Code) or isinstance(topic_rules, Code):
                code = outcome if isinstance(outcome, Code) else topic_rules
                place.hold(f"target: cannot be fenced: {code}", now, then=State.DOUBTFUL)
                continue
            try:
                self._settle(place, outcome, topic_rules)
            except (NoMatch, OutOfRange) as error:
                self._start_over(place, outcome, str(error))
            except ClusterError as error:
                place.hold(str(error), now, then=State.DOUBTFUL)

    def _raise_fence(self, places: list[Place]) -> dict[TopicPartition, Fenced | Code]:
        targets = [place.target for place in places]
        try:
            return dict(self.fences.raise_fence(targets))
        except NotAuthorized as error:
            return self._without_fence(places, error)

    def _without_fence(
        self, places: list[Place], error: MirrorError
    ) -> dict[TopicPartition, Fenced | Code]:
        """Keep the old identity; what it may still append is refused or recognised by sequence."""
        ends = self.clusters.target_ends([place.target for place in places])
        outcomes: dict[TopicPartition, Fenced | Code] = {}
        for place in places:
            end = ends[place.target]
            assert place.lease is not None
            self.tell("unfenced", place, f"taken over without a fence: {error}")
            outcomes[place.target] = end if isinstance(end, Code) else Fenced(None, end)
        return outcomes

    def _settle(self, place: Place, fenced: Fenced, rules: Target) -> None:
        lease = place.lease
        assert lease is not None
        reconciler = Reconciler(
            source=self.clusters.source,
            target=self.clusters.target,
            read_committed=self.clusters.read_committed,
        )
        found = reconciler.find(lease, fenced.end, rules)
        self._note(place, found)
        place.settled(
            replace(
                lease,
                position=found.position,
                expected=fenced.end,
                identity=_identity(lease.identity, fenced),
            )
        )

    def _note(self, place: Place, found: Found) -> None:
        lease = place.lease
        assert lease is not None
        if found.how == "jump":
            place.copied(lease.position, lease.expected, found.appended)
        elif found.how == "walk":
            place.runs.reset()
        if found.foreign:
            self.tell(
                "foreign-writer",
                place,
                f"somebody else writes to {place.target}; protect the remote topic by an ACL",
            )
        self.tell(
            "takeover",
            place,
            f"the last owner had appended {found.appended} records that it did not report;"
            f" going on at source offset {found.position} ({found.how})",
        )

    def _start_over(self, place: Place, fenced: Fenced, why: str) -> None:
        """Nobody can say where the old owner stood: repeat from the ledger, and say so."""
        lease = place.lease
        assert lease is not None
        self.tell(
            "repeat",
            place,
            f"{why}; going on at offset {lease.position}: some records may come twice",
        )
        place.runs.reset()
        place.settled(
            replace(lease, expected=fenced.end, identity=_identity(lease.identity, fenced))
        )


def _identity(old: Identity, fenced: Fenced) -> Identity:
    if fenced.identity is None:
        return old
    return Identity(
        producer_id=fenced.identity.producer_id,
        producer_epoch=fenced.identity.epoch,
        anchor=fenced.end,
    )

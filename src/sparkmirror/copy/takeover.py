"""Takeover: places whose owner went without a word get a lease that is certainly right.

    1. fence: nobody else can append any more
    2. reconcile: the target's log tells how far the old owner came
    3. the next lease begins behind the fence, at sequence 0

A place that cannot be fenced or matched is held with the reason; all others go on. Where the
transactional id is forbidden, there is no fence: after the time of a lease, when the last owner has
stopped by itself, the old identity goes on, and the broker's compare-and-append alone keeps young
data from being doubled. That is said in an event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from sparkmirror.copy.clusters import Clusters
from sparkmirror.copy.fence import Fenced, Fences
from sparkmirror.copy.lease import Identity
from sparkmirror.copy.place import Place, State
from sparkmirror.copy.reconcile import Found, NoMatch, Reconciler, Way
from sparkmirror.errors import ClusterError, MirrorError, NotAuthorized
from sparkmirror.model import TopicPartition
from sparkmirror.wire.codes import Action, Code
from sparkmirror.wire.peek import OutOfRange
from sparkmirror.wire.target import Target

Tell = Callable[[str, Place, str], None]
"""Tells the operator of an event: kind, place, text."""


@dataclass(slots=True, kw_only=True)
class Takeover:
    """Settles doubtful places."""

    clusters: Clusters
    fences: Fences
    tell: Tell
    lease_s: float
    """After so long the last owner has stopped by itself."""
    _standing: dict[TopicPartition, Fenced] = field(default_factory=dict)
    """Fences behind which nobody has been let in yet: they need not be raised again."""

    def settle(self, places: list[Place], rules: Mapping[str, Target | Code], now: float) -> None:
        """Fence and reconcile; afterwards each place waits to be granted, or is held."""
        ready: dict[Place, Target] = {}
        for place in places:
            topic_rules = rules.get(place.target.topic, Code.UNKNOWN_TOPIC_OR_PARTITION)
            if isinstance(topic_rules, Code):
                place.hold(f"target: {place.target.topic}: {topic_rules}", now, then=State.DOUBTFUL)
            elif self._is_ready(place, now):
                ready[place] = topic_rules
        fenced = self._raise_fence([p for p in ready if p.target not in self._standing])
        down = ""
        for place, topic_rules in ready.items():
            outcome = self._standing.pop(place.target, None) or fenced[place.target]
            if isinstance(outcome, Code):
                place.hold(_unfenced(outcome), now, then=State.DOUBTFUL)
            elif down:
                self._put_off(place, outcome, down, now)
            else:
                down = self._settle_or_put_off(place, outcome, topic_rules, now)

    def _settle_or_put_off(self, place: Place, fenced: Fenced, rules: Target, now: float) -> str:
        """Settle one place; if a cluster is down, say so: then the others would wait in vain."""
        try:
            self._settle(place, fenced, rules)
        except (NoMatch, OutOfRange) as error:
            self._start_over(place, fenced, str(error))
        except ClusterError as error:
            self._put_off(place, fenced, str(error), now)
            return str(error) if error.retriable else ""
        return ""

    def _put_off(self, place: Place, fenced: Fenced, why: str, now: float) -> None:
        """Try again later, behind the fence that stands."""
        if fenced.identity:
            self._standing[place.target] = fenced
        place.hold(why, now, then=State.DOUBTFUL)

    def _is_ready(self, place: Place, now: float) -> bool:
        """Whether a fence would stop the last owner, or it has certainly stopped by itself.

        A fence raises the epoch of one producer. It does not stop whoever wrote as another one: as
        a plain one, or under a transactional id that the brokers have forgotten since.
        """
        assert place.lease is not None
        wrote_as = place.lease.identity.producer_id
        if self.fences.identity_for(place.target).producer_id == wrote_as:
            return True
        if now - place.doubtful_since >= self.lease_s:
            return True
        place.hold("the last owner may still be there", now, then=State.DOUBTFUL)
        return False

    def _raise_fence(self, places: list[Place]) -> dict[TopicPartition, Fenced | Code]:
        if not places:
            return {}
        try:
            return dict(self.fences.raise_fence(place.target for place in places))
        except NotAuthorized as error:
            return self._without_fence(places, error)

    def _without_fence(
        self, places: list[Place], error: MirrorError
    ) -> dict[TopicPartition, Fenced | Code]:
        """Keep the old identity; what it may still append is refused or recognised by sequence."""
        for place in places:
            self.tell("unfenced", place, f"taken over without a fence: {error}")
        ends = self.clusters.target_ends([place.target for place in places])
        return {
            target: end if isinstance(end, Code) else Fenced(None, end)
            for target, end in ends.items()
        }

    def _settle(self, place: Place, fenced: Fenced, rules: Target) -> None:
        lease = place.lease
        assert lease is not None
        if place.is_elsewhere:
            found = Found(position=lease.position)
        else:
            found = self._reconciler().find(lease, fenced.end, rules)
        self._note(place, found, fenced)
        is_unbroken = fenced.end == lease.expected + found.appended and not found.foreign
        place.lease = replace(lease, records=lease.records + found.appended)
        self._hand_over(place, fenced, found.position, is_unbroken=is_unbroken)

    def _reconciler(self) -> Reconciler:
        return Reconciler(
            source=self.clusters.source,
            target=self.clusters.target,
            read_committed=self.clusters.read_committed,
        )

    def _note(self, place: Place, found: Found, fenced: Fenced) -> None:
        lease = place.lease
        assert lease is not None
        if found.how is Way.JUMP:
            place.copied(lease.position, lease.expected, found.appended)
        elif found.how is Way.WALK:
            place.runs.be_coarse()  # where what was appended since then lies is not known
        if found.foreign:
            self.tell(
                "foreign-writer",
                place,
                f"somebody else writes to {place.target}; protect the remote topic by an ACL",
            )
        end = fenced.end - (1 if fenced.identity else 0)
        if end < lease.expected:
            place.runs.reset()
            self.tell(
                "remote-truncated",
                place,
                f"{place.target} ends at offset {end}, not at {lease.expected}: the target has"
                " lost records that it had acknowledged; compare it with the source",
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
        place.runs.be_coarse()
        self._hand_over(place, fenced, lease.position, is_unbroken=False)

    def _hand_over(self, place: Place, fenced: Fenced, position: int, *, is_unbroken: bool) -> None:
        """Make the next lease. Without a fence the old identity goes on if its sequence does."""
        lease = place.lease
        assert lease is not None
        identity = lease.identity
        if fenced.identity or not is_unbroken:
            given = fenced.identity or self.fences.plain_identity()
            identity = Identity(
                producer_id=given.producer_id, producer_epoch=given.epoch, anchor=fenced.end
            )
        place.settled(replace(lease, position=position, expected=fenced.end, identity=identity))


def _unfenced(code: Code) -> str:
    rights = "; grant Read and Write on the topic" if code.action is Action.NOT_AUTHORIZED else ""
    return f"target: cannot be fenced: {code}{rights}"

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

from sparkmirror.copy.driver.cluster_queries import ClusterQueries
from sparkmirror.copy.driver.fence import FencedPartition, PartitionFencer
from sparkmirror.copy.driver.reconcile import (
    ReconciledPosition,
    ReconcileFailed,
    ReconcileMethod,
    Reconciler,
)
from sparkmirror.copy.driver.tracked_partition import LeaseState, TrackedPartition
from sparkmirror.copy.lease import LeaseIdentity
from sparkmirror.errors import ClusterError, MirrorError, NotAuthorized
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.target_limits import TargetLimits
from sparkmirror.wire.protocol.error_codes import ErrorAction, ErrorCode
from sparkmirror.wire.protocol.single_fetch import OffsetOutOfRange

PublishEvent = Callable[[str, TrackedPartition, str], None]
"""Tells the operator of an event: kind, place, text."""


@dataclass(slots=True, kw_only=True)
class Takeover:
    """Settles doubtful places."""

    clusters: ClusterQueries
    fences: PartitionFencer
    publish: PublishEvent
    lease_timeout_s: float
    """After so long the last owner has stopped by itself."""
    _unused_fences: dict[TopicPartition, FencedPartition] = field(default_factory=dict)
    """Fences behind which nobody has been let in yet: they need not be raised again."""

    def resolve(
        self,
        places: list[TrackedPartition],
        rules: Mapping[str, TargetLimits | ErrorCode],
        now: float,
    ) -> None:
        """Fence and reconcile; afterwards each place waits to be granted, or is held."""
        ready: dict[TrackedPartition, TargetLimits] = {}
        for place in places:
            topic_rules = rules.get(place.target.topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            if isinstance(topic_rules, ErrorCode):
                place.hold(
                    f"target: {place.target.topic}: {topic_rules}", now, then=LeaseState.DOUBTFUL
                )
            elif self._is_ready(place, now):
                ready[place] = topic_rules
        fenced = self._fence([p for p in ready if p.target not in self._unused_fences])
        down = ""
        for place, topic_rules in ready.items():
            outcome = self._unused_fences.pop(place.target, None) or fenced[place.target]
            if isinstance(outcome, ErrorCode):
                place.hold(_fence_error(outcome), now, then=LeaseState.DOUBTFUL)
            elif down:
                self._hold_fenced(place, outcome, down, now)
            else:
                down = self._resolve_or_hold(place, outcome, topic_rules, now)

    def _resolve_or_hold(
        self, place: TrackedPartition, fenced: FencedPartition, rules: TargetLimits, now: float
    ) -> str:
        """Settle one place; if a cluster is down, say so: then the others would wait in vain."""
        try:
            self._resolve_one(place, fenced, rules)
        except (ReconcileFailed, OffsetOutOfRange) as error:
            self._resume_from_ledger(place, fenced, str(error))
        except ClusterError as error:
            self._hold_fenced(place, fenced, str(error), now)
            return str(error) if error.retriable else ""
        return ""

    def _hold_fenced(
        self, place: TrackedPartition, fenced: FencedPartition, why: str, now: float
    ) -> None:
        """Try again later, behind the fence that stands."""
        if fenced.identity:
            self._unused_fences[place.target] = fenced
        place.hold(why, now, then=LeaseState.DOUBTFUL)

    def _is_ready(self, place: TrackedPartition, now: float) -> bool:
        """Whether a fence would stop the last owner, or it has certainly stopped by itself.

        A fence raises the epoch of one producer. It does not stop whoever wrote as another one: as
        a plain one, or under a transactional id that the brokers have forgotten since.
        """
        assert place.lease is not None
        wrote_as = place.lease.identity.producer_id
        if self.fences.identity_for(place.target).producer_id == wrote_as:
            return True
        if now - place.doubtful_since >= self.lease_timeout_s:
            return True
        place.hold("the last owner may still be there", now, then=LeaseState.DOUBTFUL)
        return False

    def _fence(
        self, places: list[TrackedPartition]
    ) -> dict[TopicPartition, FencedPartition | ErrorCode]:
        if not places:
            return {}
        try:
            return dict(self.fences.fence(place.target for place in places))
        except NotAuthorized as error:
            return self._without_fence(places, error)

    def _without_fence(
        self, places: list[TrackedPartition], error: MirrorError
    ) -> dict[TopicPartition, FencedPartition | ErrorCode]:
        """Keep the old identity; what it may still append is refused or recognised by sequence."""
        for place in places:
            self.publish("unfenced", place, f"taken over without a fence: {error}")
        ends = self.clusters.target_ends([place.target for place in places])
        return {
            target: end if isinstance(end, ErrorCode) else FencedPartition(None, end)
            for target, end in ends.items()
        }

    def _resolve_one(
        self, place: TrackedPartition, fenced: FencedPartition, rules: TargetLimits
    ) -> None:
        lease = place.lease
        assert lease is not None
        if place.is_repositioned:
            found = ReconciledPosition(position=lease.position)
        else:
            found = self._reconciler().find(lease, fenced.end_offset, rules)
        self._record_outcome(place, found, fenced)
        is_unbroken = (
            fenced.end_offset == lease.expected + found.appended and not found.has_foreign_records
        )
        place.lease = replace(lease, records=lease.records + found.appended)
        self._set_lease(place, fenced, found.position, is_unbroken=is_unbroken)

    def _reconciler(self) -> Reconciler:
        return Reconciler(
            source=self.clusters.source,
            target=self.clusters.target,
            read_committed=self.clusters.read_committed,
        )

    def _record_outcome(
        self, place: TrackedPartition, found: ReconciledPosition, fenced: FencedPartition
    ) -> None:
        lease = place.lease
        assert lease is not None
        if found.method is ReconcileMethod.JUMP:
            place.add_run(lease.position, lease.expected, found.appended)
        elif found.method is ReconcileMethod.WALK:
            place.runs.mark_coarse()  # where what was appended since then lies is not known
        if found.has_foreign_records:
            self.publish(
                "foreign-writer",
                place,
                f"somebody else writes to {place.target}; protect the remote topic by an ACL",
            )
        end = fenced.end_offset - (1 if fenced.identity else 0)
        if end < lease.expected:
            place.runs.reset()
            self.publish(
                "remote-truncated",
                place,
                f"{place.target} ends at offset {end}, not at {lease.expected}: the target has"
                " lost records that it had acknowledged; compare it with the source",
            )
        self.publish(
            "takeover",
            place,
            f"the last owner had appended {found.appended} records that it did not report;"
            f" going on at source offset {found.position} ({found.method})",
        )

    def _resume_from_ledger(
        self, place: TrackedPartition, fenced: FencedPartition, why: str
    ) -> None:
        """Nobody can say where the old owner stood: repeat from the ledger, and say so."""
        lease = place.lease
        assert lease is not None
        self.publish(
            "repeat",
            place,
            f"{why}; going on at offset {lease.position}: some records may come twice",
        )
        place.runs.mark_coarse()
        self._set_lease(place, fenced, lease.position, is_unbroken=False)

    def _set_lease(
        self, place: TrackedPartition, fenced: FencedPartition, position: int, *, is_unbroken: bool
    ) -> None:
        """Make the next lease. Without a fence the old identity goes on if its sequence does."""
        lease = place.lease
        assert lease is not None
        identity = lease.identity
        if fenced.identity or not is_unbroken:
            given = fenced.identity or self.fences.new_unfenced_identity()
            identity = LeaseIdentity(
                producer_id=given.producer_id, producer_epoch=given.epoch, anchor=fenced.end_offset
            )
        place.set_lease(
            replace(lease, position=position, expected=fenced.end_offset, identity=identity)
        )


def _fence_error(code: ErrorCode) -> str:
    rights = (
        "; grant Read and Write on the topic" if code.action is ErrorAction.NOT_AUTHORIZED else ""
    )
    return f"target: cannot be fenced: {code}{rights}"

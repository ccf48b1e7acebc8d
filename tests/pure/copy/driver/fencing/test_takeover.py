"""Takeover: which lease the next owner gets, and which events are reported."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparkmirror.copy.control.messages import Hello
from sparkmirror.copy.driver.fencing.fence import (
    NOT_IDEMPOTENT_PRODUCER,
    FencedPartition,
    NoTransactions,
)
from sparkmirror.copy.driver.fencing.producer_support import ProducerSupport
from sparkmirror.copy.driver.fencing.reconcile import (
    ReconciledPosition,
    ReconcileFailed,
    ReconcileMethod,
    Reconciler,
)
from sparkmirror.copy.driver.fencing.takeover import (
    Takeover,
    can_take_over,
    continues_sequence,
    next_lease,
    takeover_events,
)
from sparkmirror.copy.driver.monitoring.event_log import EventLog
from sparkmirror.copy.driver.tracked_partition import LeaseState, TrackedPartition
from sparkmirror.copy.lease import NOT_IDEMPOTENT, Lease, LeaseIdentity
from sparkmirror.errors import (
    ClusterUnavailable,
    MirrorError,
    NotAuthorized,
    UnsupportedByBroker,
)
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.target_limits import TargetLimits
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.producer_ids import ProducerIdAndEpoch
from tests.support.copy.scripted_clusters import FENCE_PRODUCER, ScriptedClusters, ScriptedFences

SOURCE, TARGET = TopicPartition("t", 0), TopicPartition("A.t", 0)
LEASE = Lease(
    source=SOURCE,
    target=TARGET,
    position=100,
    expected=50,
    identity=LeaseIdentity(producer_id=FENCE_PRODUCER.producer_id, producer_epoch=1, anchor=3),
    records=40,
)
WITHOUT_ID = replace(
    LEASE,
    identity=LeaseIdentity(producer_id=NOT_IDEMPOTENT, producer_epoch=-1, anchor=50),
)
NOTHING = ReconciledPosition(position=100)
JUMP = ReconciledPosition(position=110, appended=10, method=ReconcileMethod.JUMP)
FOREIGN = replace(JUMP, method=ReconcileMethod.WALK, has_foreign_records=True)
LIMITS = {"A.t": TargetLimits()}


@pytest.mark.parametrize(
    ("fenceable", "doubtful_s", "verdict"),
    [(9, 0.0, True), (5, 0.0, False), (None, 14.9, False), (5, 14.9, False), (5, 15.0, True)],
    ids=["fence-stops-it", "another-producer", "no-fence", "before-the-timeout", "after-it"],
)
def test_a_partition_is_taken_over_if_its_owner_is_fenced_or_has_stopped(
    fenceable: int | None, doubtful_s: float, verdict: bool
) -> None:
    assert can_take_over(LEASE, fenceable, doubtful_s, lease_timeout_s=15.0) is verdict


@pytest.mark.parametrize(
    ("doubtful_s", "is_given_back", "verdict"),
    [(15.9, False, False), (16.0, False, True), (0.9, True, False), (1.0, True, True)],
    ids=["its-last-request-may-arrive", "has-stopped", "given-back-may-arrive", "given-back"],
)
def test_without_a_producer_id_only_time_ends_the_doubt(
    doubtful_s: float, is_given_back: bool, verdict: bool
) -> None:
    assert verdict is can_take_over(
        WITHOUT_ID, None, doubtful_s, lease_timeout_s=15.0, is_given_back=is_given_back
    )


@pytest.mark.parametrize(
    ("end", "found", "verdict"),
    [
        (50, NOTHING, True),
        (60, JUMP, True),
        (61, JUMP, False),
        (49, NOTHING, False),
        (60, FOREIGN, False),
    ],
    ids=["nothing-appended", "own-records", "more-than-own", "truncated", "foreign-records"],
)
def test_the_old_identity_continues_only_behind_its_own_records(
    end: int, found: ReconciledPosition, verdict: bool
) -> None:
    assert continues_sequence(LEASE, end, found) is verdict


def test_the_next_lease_starts_at_the_end_of_the_target_at_sequence_0() -> None:
    lease = next_lease(LEASE, JUMP, 61, ProducerIdAndEpoch(9, 2))
    assert (lease.position, lease.expected, lease.records) == (110, 61, 50)
    assert lease.identity == LeaseIdentity(producer_id=9, producer_epoch=2, anchor=61)
    assert lease.identity.sequence_for(lease.expected) == 0


def test_without_a_new_producer_the_old_sequence_continues() -> None:
    lease = next_lease(LEASE, JUMP, 60, None)
    assert (lease.position, lease.expected, lease.records) == (110, 60, 50)
    assert lease.identity == LEASE.identity


@pytest.mark.parametrize(
    ("fenced", "found", "kinds"),
    [
        (FencedPartition(FENCE_PRODUCER, 61), JUMP, ["takeover"]),
        (FencedPartition(FENCE_PRODUCER, 62), FOREIGN, ["foreign-writer", "takeover"]),
        (FencedPartition(FENCE_PRODUCER, 51), NOTHING, ["takeover"]),
        (FencedPartition(FENCE_PRODUCER, 50), NOTHING, ["remote-truncated", "takeover"]),
        (FencedPartition(None, 50), NOTHING, ["takeover"]),
        (FencedPartition(None, 49), NOTHING, ["remote-truncated", "takeover"]),
    ],
    ids=["own", "foreign", "only-the-fence", "truncated", "unfenced", "unfenced-truncated"],
)
def test_foreign_records_and_truncation_are_events_of_the_takeover(
    fenced: FencedPartition, found: ReconciledPosition, kinds: list[str]
) -> None:
    assert [kind for kind, _ in takeover_events(LEASE, fenced, found)] == kinds


class ScriptedReconciler(Reconciler):
    """Finds one position, or raises one error."""

    outcome: ReconciledPosition | MirrorError = NOTHING

    def find(self, lease: Lease, end: int, limits: TargetLimits) -> ReconciledPosition:
        if isinstance(self.outcome, MirrorError):
            raise self.outcome
        return self.outcome


class ScriptedTakeover(Takeover):
    """A takeover whose fences and reconciler are scripted."""

    found: ReconciledPosition | MirrorError = NOTHING

    def _reconciler(self) -> Reconciler:
        made = ScriptedReconciler(
            source=super()._reconciler().source,
            target=super()._reconciler().target,
            read_committed=True,
        )
        made.outcome = self.found
        return made


class Scene:
    """A doubtful partition and its takeover."""

    def __init__(self, found: ReconciledPosition | MirrorError = NOTHING) -> None:
        self.clusters, self.events = ScriptedClusters.scripted(), EventLog()
        self.fences = ScriptedFences(self.clusters)
        self.takeover = ScriptedTakeover(
            clusters=self.clusters,
            fences=self.fences,
            publish=self.events.publish,
            lease_timeout_s=15.0,
        )
        self.takeover.found = found
        self.tracked = TrackedPartition(SOURCE, TARGET, 0)
        self.tracked.set_lease(LEASE)
        self.tracked.grant_to(Hello(task=0, attempt=0, host="h", pid=1))
        self.tracked.release(clean=False, now=0.0)

    def resolve(self, now: float = 1.0) -> LeaseState:
        self.tracked.end_hold_if_due(1e9)
        self.takeover.resolve([self.tracked], LIMITS, now)
        return self.tracked.state

    @property
    def event_kinds(self) -> list[str]:
        return [event.kind for event in self.events.latest()]


def test_a_fenced_and_reconciled_partition_waits_for_its_next_owner() -> None:
    scene = Scene(JUMP)
    scene.fences.outcome = FencedPartition(FENCE_PRODUCER, 61)
    assert scene.resolve() is LeaseState.WAITING
    assert scene.tracked.lease == next_lease(LEASE, JUMP, 61, FENCE_PRODUCER)
    assert scene.tracked.suppressed == JUMP.appended == 10
    assert [tuple(run) for run in scene.tracked.runs] == [(100, 50, 10)]


def test_a_partition_that_cannot_be_fenced_stays_doubtful_with_the_reason() -> None:
    scene = Scene()
    scene.fences.outcome = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert scene.resolve() is LeaseState.HELD
    assert scene.tracked.reason.startswith("target: cannot be fenced: TOPIC_AUTHORIZATION_FAILED")
    assert "grant Read and Write" in scene.tracked.reason
    scene.tracked.end_hold_if_due(1e9)
    assert scene.tracked.state is LeaseState.DOUBTFUL


def test_a_fence_is_kept_while_a_cluster_is_down() -> None:
    scene = Scene(ClusterUnavailable("source", "down"))
    assert scene.resolve() is LeaseState.HELD
    assert scene.resolve() is LeaseState.HELD
    scene.takeover.found = NOTHING
    assert scene.resolve() is LeaseState.WAITING
    assert scene.fences.fenced == [TARGET], "one fence for three tries"


def test_if_a_cluster_is_down_the_other_partitions_are_not_tried() -> None:
    scene = Scene(ClusterUnavailable("source", "down"))
    other = TrackedPartition(SOURCE, TARGET._replace(partition=0), 0)
    other.set_lease(LEASE)
    other.release(clean=False, now=0.0)
    scene.takeover.resolve([scene.tracked, other], LIMITS, 1.0)
    assert {scene.tracked.reason, other.reason} == {"source: down"}


def test_without_a_match_copying_resumes_at_the_ledger_and_may_repeat() -> None:
    scene = Scene(ReconcileFailed("no match"))
    assert scene.resolve() is LeaseState.WAITING
    assert scene.event_kinds == ["repeat"]
    lease = scene.tracked.lease
    assert lease
    assert (lease.position, lease.expected, lease.records) == (100, 51, 40)
    assert lease.identity.producer_epoch == FENCE_PRODUCER.epoch


@pytest.mark.parametrize(
    ("end", "producer_id"), [(60, 9), (63, 77)], ids=["unbroken-sequence", "broken-sequence"]
)
def test_without_the_right_to_fence_the_old_identity_continues_if_its_sequence_does(
    end: int, producer_id: int
) -> None:
    scene = Scene(JUMP)
    scene.fences.outcome = NotAuthorized("target", "no transactional ids")
    scene.clusters.target_end = end
    assert scene.resolve() is LeaseState.WAITING
    assert scene.event_kinds == ["unfenced", "takeover"]
    assert scene.tracked.lease
    assert scene.tracked.lease.identity.producer_id == producer_id


def test_a_right_to_fence_that_was_taken_away_is_a_reason_until_the_last_owner_has_stopped() -> (
    None
):
    scene = Scene(JUMP)
    scene.fences.outcome = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert scene.resolve(now=1.0) is LeaseState.HELD
    assert "grant Write and Describe on the transactional ids" in scene.tracked.reason
    assert scene.event_kinds == []
    assert scene.resolve(now=16.0) is LeaseState.WAITING
    assert scene.event_kinds == ["unfenced", "takeover"]


def test_a_fence_that_fails_half_way_is_not_taken_for_a_target_without_transactions() -> None:
    scene = Scene()
    scene.fences.outcome = UnsupportedByBroker("target", "the broker does not support EndTxn")
    with pytest.raises(UnsupportedByBroker, match="EndTxn"):
        scene.resolve()
    assert scene.tracked.lease == LEASE


def test_an_owner_that_no_fence_stops_is_waited_for() -> None:
    scene = Scene()
    scene.fences.first_identity = ProducerIdAndEpoch(5, 0)
    assert scene.resolve(now=1.0) is LeaseState.HELD
    assert scene.tracked.reason == "the last owner may still be there"
    assert scene.resolve(now=16.0) is LeaseState.WAITING


def test_without_transactions_the_last_owner_under_the_same_producer_id_is_waited_for() -> None:
    scene = Scene()
    scene.fences.scripted_support = ProducerSupport(has_transactions=False)
    scene.fences.outcome = NoTransactions("target", "no transactions")
    assert scene.resolve(now=14.0) is LeaseState.HELD
    assert scene.tracked.reason == "the last owner may still be there"
    assert scene.resolve(now=15.0) is LeaseState.WAITING


def test_a_lease_with_a_producer_id_that_was_given_back_waits_for_no_request() -> None:
    scene = Scene()
    scene.tracked.release(clean=False, now=0.0, is_given_back=True)
    scene.fences.first_identity = ProducerIdAndEpoch(5, 0)
    assert scene.resolve(now=1.0) is LeaseState.HELD
    assert scene.tracked.reason == "the last owner may still be there"


def test_a_repositioned_partition_is_not_reconciled() -> None:
    scene = Scene(ReconcileFailed("must not be asked"))
    scene.tracked.seek(500)
    assert scene.resolve() is LeaseState.WAITING
    assert scene.tracked.lease
    assert scene.tracked.lease.position == 500


def test_without_target_limits_the_partition_stays_doubtful() -> None:
    scene = Scene()
    scene.takeover.resolve([scene.tracked], {}, 1.0)
    assert scene.tracked.state is LeaseState.HELD
    assert "UNKNOWN_TOPIC_OR_PARTITION" in scene.tracked.reason


def test_without_producer_ids_the_next_lease_has_none_and_no_event_repeats_the_reason() -> None:
    runs = (OffsetRun(100, 50, 4), OffsetRun(104, 57, 2))
    compared = ReconciledPosition(
        position=106, appended=6, method=ReconcileMethod.COMPARE, runs=runs
    )
    scene = Scene(compared)
    scene.tracked.set_lease(WITHOUT_ID)
    scene.tracked.release(clean=False, now=0.0, is_given_back=True)
    scene.fences.scripted_support = ProducerSupport(has_producer_ids=False, has_transactions=False)
    scene.fences.outcome = NoTransactions("target", "no transactions")
    scene.fences.unfenced_identity = scene.fences.first_identity = NOT_IDEMPOTENT_PRODUCER
    scene.clusters.target_end = 59
    assert scene.resolve(now=0.5) is LeaseState.HELD
    assert scene.tracked.reason == "the target may still append what was sent"
    assert scene.resolve(now=2.0) is LeaseState.WAITING
    lease = scene.tracked.lease
    assert lease
    assert (lease.position, lease.expected, lease.records) == (106, 59, 46)
    assert not lease.is_idempotent
    assert [tuple(run) for run in scene.tracked.runs] == [(100, 50, 4), (104, 57, 2)]
    assert scene.event_kinds == ["takeover"]

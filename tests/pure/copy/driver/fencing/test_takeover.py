"""Takeover: which lease the next owner gets, and which events are reported."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import count

import pytest

from sparkmirror.copy.control.messages import Hello
from sparkmirror.copy.driver.fencing.fence import (
    NOT_IDEMPOTENT_PRODUCER,
    LogEnd,
    NoTransactions,
)
from sparkmirror.copy.driver.fencing.producer_support import ProducerSupport
from sparkmirror.copy.driver.fencing.reconcile import (
    ReconciledPosition,
    ReconcileFailed,
    ReconcileMethod,
    Reconciler,
)
from sparkmirror.copy.driver.fencing.takeover import READ_TRIES, Takeover
from sparkmirror.copy.driver.fencing.takeover_decisions import (
    MAX_SINGLE_EVENTS,
    continues_sequence,
    may_append_for_s,
    next_lease,
    takeover_events,
    takeover_text,
)
from sparkmirror.copy.driver.fencing.unfenced_log_ends import UnfencedLogEnds
from sparkmirror.copy.driver.monitoring.event_log import EventLog
from sparkmirror.copy.driver.tracked_partition import LeaseState, TrackedPartition
from sparkmirror.copy.lease import NOT_IDEMPOTENT, Lease, LeaseIdentity
from sparkmirror.errors import (
    BatchError,
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
LAST_TASK_MAY_APPEND = "the last task may still append; the takeover waits until it cannot"


@pytest.mark.parametrize(
    ("lease", "fenceable", "is_given_back", "seconds"),
    [
        (LEASE, 9, False, 0.0),
        (LEASE, 5, False, 15.0),
        (LEASE, None, False, 15.0),
        (LEASE, None, True, 1.0),
        (WITHOUT_ID, None, False, 16.0),
        (WITHOUT_ID, None, True, 1.0),
    ],
    ids=[
        "fence-stops-it",
        "another-producer",
        "no-fence",
        "no-fence-given-back",
        "no-producer-id",
        "no-producer-id-given-back",
    ],
)
def test_an_owner_may_append_until_it_is_fenced_or_has_stopped(
    lease: Lease, fenceable: int | None, is_given_back: bool, seconds: float
) -> None:
    assert seconds == may_append_for_s(
        lease, fenceable, 15.0, plain_timeout_s=12.0, is_given_back=is_given_back
    )


def test_without_a_producer_id_a_takeover_waits_for_the_longest_request() -> None:
    assert may_append_for_s(WITHOUT_ID, None, 15.0, plain_timeout_s=60.0) == 61.0
    assert may_append_for_s(LEASE, None, 15.0, plain_timeout_s=60.0) == 15.0


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
    ("log_end", "found", "kinds"),
    [
        (LogEnd(FENCE_PRODUCER, 61), JUMP, ["takeover"]),
        (LogEnd(FENCE_PRODUCER, 62), FOREIGN, ["foreign-writer", "takeover"]),
        (LogEnd(FENCE_PRODUCER, 51), NOTHING, ["takeover"]),
        (LogEnd(FENCE_PRODUCER, 50), NOTHING, ["remote-truncated", "takeover"]),
        (LogEnd(None, 50), NOTHING, ["takeover"]),
        (LogEnd(None, 49), NOTHING, ["remote-truncated", "takeover"]),
    ],
    ids=["own", "foreign", "only-the-fence", "truncated", "unfenced", "unfenced-truncated"],
)
def test_foreign_records_and_truncation_are_events_of_the_takeover(
    log_end: LogEnd, found: ReconciledPosition, kinds: list[str]
) -> None:
    assert [kind for kind, _ in takeover_events(LEASE, log_end, found)] == kinds


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

    def without_producer_ids(self, *, is_given_back: bool) -> None:
        """Let the target lack producer ids; the lease ended at 0."""
        self.tracked.set_lease(WITHOUT_ID)
        self.tracked.release(clean=False, now=0.0, is_given_back=is_given_back)
        self.fences.scripted_support = ProducerSupport(
            has_producer_ids=False, has_transactions=False
        )
        self.fences.outcome = NoTransactions("target", "no transactions")
        self.fences.unfenced_identity = self.fences.first_identity = NOT_IDEMPOTENT_PRODUCER

    def resolve(self, now: float = 1.0) -> LeaseState:
        self.tracked.end_hold_if_due(1e9)
        self.takeover.resolve([self.tracked], LIMITS, now)
        return self.tracked.state

    @property
    def event_kinds(self) -> list[str]:
        return [event.kind for event in self.events.latest()]


def test_a_fenced_and_reconciled_partition_waits_for_its_next_owner() -> None:
    scene = Scene(JUMP)
    scene.fences.outcome = LogEnd(FENCE_PRODUCER, 61)
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
    assert scene.tracked.reason == LAST_TASK_MAY_APPEND
    assert scene.resolve(now=16.0) is LeaseState.WAITING


def test_without_transactions_the_last_owner_under_the_same_producer_id_is_waited_for() -> None:
    scene = Scene()
    scene.fences.scripted_support = ProducerSupport(has_transactions=False)
    scene.fences.outcome = NoTransactions("target", "no transactions")
    assert scene.resolve(now=14.0) is LeaseState.HELD
    assert scene.tracked.reason == LAST_TASK_MAY_APPEND
    assert scene.resolve(now=15.0) is LeaseState.WAITING


def test_a_lease_with_a_producer_id_that_was_given_back_waits_only_for_its_last_request() -> None:
    scene = Scene()
    scene.tracked.release(clean=False, now=0.0, is_given_back=True)
    scene.fences.scripted_support = ProducerSupport(has_transactions=False)
    scene.fences.outcome = NoTransactions("target", "no transactions")
    assert scene.resolve(now=0.5) is LeaseState.HELD
    assert scene.tracked.reason == "the target may still append what was sent"
    assert scene.resolve(now=1.0) is LeaseState.WAITING


@pytest.mark.parametrize("failures", [0, 8])
@pytest.mark.parametrize(("is_given_back", "due"), [(False, 16.0), (True, 1.0)])
def test_a_takeover_begins_when_it_is_due_whatever_failed_before(
    failures: int, is_given_back: bool, due: float
) -> None:
    scene = Scene()
    for _ in range(failures):
        scene.tracked.hold("the backoff grows to 10 s", 0.0, then=LeaseState.WAITING)
    scene.without_producer_ids(is_given_back=is_given_back)
    for now in (0.1, 0.2):
        scene.tracked.end_hold_if_due(1e9)
        scene.takeover.resolve([scene.tracked], LIMITS, now)
        assert (scene.tracked.state, scene.tracked.held_until) == (LeaseState.HELD, due)


def test_a_batch_that_cannot_be_read_holds_up_no_other_partition() -> None:
    scene = Scene(BatchError("the batch at offset 52: its records are damaged"))
    scene.without_producer_ids(is_given_back=True)
    for _ in range(READ_TRIES - 1):
        assert scene.resolve(now=2.0) is LeaseState.HELD
        assert scene.tracked.reason == "the batch at offset 52: its records are damaged"
        scene.tracked.end_hold_if_due(float("inf"))
    assert scene.resolve(now=2.0) is LeaseState.WAITING
    assert scene.event_kinds == ["repeat"]
    assert "the batch at offset 52" in scene.events.latest()[0].text
    assert scene.tracked.lease
    assert (scene.tracked.lease.position, scene.tracked.lease.expected) == (100, 50)


def partitions_without_producer_ids(count: int) -> list[TrackedPartition]:
    """Return doubtful partitions whose leases were given back at 0."""
    made = []
    for number in range(count):
        source, target = TopicPartition("t", number), TopicPartition("A.t", number)
        tracked = TrackedPartition(source, target, 0)
        tracked.set_lease(replace(WITHOUT_ID, source=source, target=target))
        tracked.release(clean=False, now=0.0, is_given_back=True)
        made.append(tracked)
    return made


def test_without_producer_ids_one_event_counts_the_partitions() -> None:
    found = ReconciledPosition(position=103, appended=3, method=ReconcileMethod.COMPARE)
    scene = Scene(found)
    scene.without_producer_ids(is_given_back=True)
    partitions = partitions_without_producer_ids(5)
    scene.takeover.resolve(partitions, LIMITS, 2.0)
    assert {tracked.state for tracked in partitions} == {LeaseState.WAITING}
    (event,) = scene.events.latest()
    assert (event.kind, event.partition) == ("takeover", "t-0")
    assert event.text == (
        "the last owners of 5 partitions, this one among them, had appended 15 records that they"
        " did not report; going on behind those (compare)"
    )
    assert takeover_text([found]) == (
        "the last owner had appended 3 records that it did not report; going on at source offset"
        " 103 (compare)"
    )


def fenced_partitions(count: int) -> list[TrackedPartition]:
    """Return doubtful partitions that a fence protects."""
    made = []
    for number in range(count):
        source, target = TopicPartition("t", number), TopicPartition("A.t", number)
        tracked = TrackedPartition(source, target, 0)
        tracked.set_lease(replace(LEASE, source=source, target=target))
        tracked.release(clean=False, now=0.0)
        made.append(tracked)
    return made


@pytest.mark.parametrize(
    ("found", "count", "events"),
    [
        (NOTHING, MAX_SINGLE_EVENTS, MAX_SINGLE_EVENTS),
        (NOTHING, MAX_SINGLE_EVENTS + 1, 1),
        (JUMP, MAX_SINGLE_EVENTS + 1, MAX_SINGLE_EVENTS + 1),
    ],
    ids=["few", "many", "many-with-records"],
)
def test_many_takeovers_without_news_are_one_event(
    found: ReconciledPosition, count: int, events: int
) -> None:
    scene = Scene(found)
    scene.fences.outcome = LogEnd(FENCE_PRODUCER, 51 + found.appended)
    partitions = fenced_partitions(count)
    scene.takeover.resolve(partitions, LIMITS, 2.0)
    assert {tracked.state for tracked in partitions} == {LeaseState.WAITING}
    assert scene.event_kinds == ["takeover"] * events
    if events == 1:
        assert f"the last owners of {count} partitions" in scene.events.latest()[0].text


class UnreachableTarget(ScriptedClusters):
    """No end of a log can be queried."""

    def target_ends(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int | ErrorCode]:
        raise ClusterUnavailable("target", "down")


def test_without_a_fence_partitions_are_held_while_their_ends_cannot_be_queried() -> None:
    scene = Scene()
    scene.without_producer_ids(is_given_back=True)
    scene.takeover.clusters = UnreachableTarget.scripted()
    partitions = partitions_without_producer_ids(3)
    scene.takeover.resolve(partitions, LIMITS, 2.0)
    assert {tracked.reason for tracked in partitions} == {"target: down"}
    assert scene.event_kinds == []


class GrowingLogs(ScriptedClusters):
    """Every query of the ends finds one record more."""

    def target_ends(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int | ErrorCode]:
        assert isinstance(self.target_end, int)
        self.target_end += 1
        return super().target_ends(partitions)


def test_without_a_fence_the_end_of_a_log_is_queried_shortly_before_it_is_compared() -> None:
    scene = Scene()
    scene.without_producer_ids(is_given_back=True)
    scene.takeover.clusters = GrowingLogs.scripted()
    times = count()
    scene.takeover.clock = lambda: next(times) * 0.4
    partitions = partitions_without_producer_ids(5)
    scene.takeover.resolve(partitions, LIMITS, 2.0)
    assert [p.lease.expected for p in partitions if p.lease] == [51, 51, 51, 52, 52]


def test_ends_that_take_long_to_query_are_queried_once_and_errors_stay() -> None:
    """A partition without a leader makes a query slow, and thousands may follow it."""
    partitions = [TopicPartition("A.t", number) for number in range(4)]
    clock = [0.0]
    queries: list[list[TopicPartition]] = []

    def query(asked: Iterable[TopicPartition]) -> dict[TopicPartition, int | ErrorCode]:
        clock[0] += 3.0
        queries.append([*asked])
        return {
            one: ErrorCode.LEADER_NOT_AVAILABLE if one.partition == 1 else 50 for one in queries[-1]
        }

    ends = UnfencedLogEnds(partitions, query, lambda: clock[0])
    found = [ends.find(partition) for partition in partitions[:3]]
    assert queries == [partitions]
    assert found[1] is ErrorCode.LEADER_NOT_AVAILABLE
    clock[0] += 2.0
    ends.find(partitions[3])
    assert queries == [partitions, partitions[3:]]


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
    scene.without_producer_ids(is_given_back=True)
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

"""Lease grants: resume points, losses and target limits decide which partitions are granted."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import replace

import pytest

from sparkmirror.copy.control.messages import ControlMessage, GrantLeases, Hello
from sparkmirror.copy.delivery import DeliveryMode
from sparkmirror.copy.driver.cluster_queries import LogRange
from sparkmirror.copy.driver.lease_grants import (
    MAX_PARTITIONS_PER_GRANT,
    LeaseGranter,
    LossDecision,
    decide_loss,
)
from sparkmirror.copy.driver.ledger_cache import LedgerCache
from sparkmirror.copy.driver.monitoring.event_log import EventLog
from sparkmirror.copy.driver.resume.data_loss import DataLoss, LossKind
from sparkmirror.copy.driver.resume.resume_point_finder import ResumePointFinder
from sparkmirror.copy.driver.routed_topics import RoutedTopics, RoutedTopicsFound
from sparkmirror.copy.driver.sharing.worker_group_membership import GroupMembership
from sparkmirror.copy.driver.task_attempts import TaskAttempt
from sparkmirror.copy.driver.tracked_partition import LeaseState, TrackedPartition
from sparkmirror.copy.job import DataLossPolicy, ExistingRecordsPolicy
from sparkmirror.copy.lease import Lease, LeaseIdentity
from sparkmirror.copy.ledger import LedgerEntry, entry_for_lease
from sparkmirror.copy.settings import CopySettings
from sparkmirror.copy.task.transform.converter_factory import ConverterFactory
from sparkmirror.copy.task.transform.transforming_converter import TransformingConverter
from sparkmirror.errors import ClusterUnavailable, NotAuthorized
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.target_limits import TargetLimits
from sparkmirror.wire.protocol.error_codes import ErrorCode
from tests.support.copy.scripted_clusters import (
    InMemoryLedger,
    ScriptedClusters,
    ScriptedFences,
    copy_job,
)
from tests.support.copy.transform_chains import DROP_MARKED

SOURCE, TARGET = TopicPartition("t", 0), TopicPartition("A.t", 0)
HELLO = Hello(task=0, attempt=0, host="h", pid=1)
STORED = Lease(
    source=SOURCE,
    target=TARGET,
    position=100,
    expected=50,
    identity=LeaseIdentity(producer_id=7, producer_epoch=1, anchor=3),
    source_topic_id="s",
    target_topic_id="s",
)
CLOSED = entry_for_lease(STORED, is_open=False)
HALT, SKIP, RESTART = DataLossPolicy


class ScriptedRoutedTopics(RoutedTopics):
    """Creates no topic: what is found is scripted."""

    found = RoutedTopicsFound({}, {})

    def find(self, partitions: Iterable[TrackedPartition]) -> RoutedTopicsFound:
        return self.found


class Granting:
    """A granter with one partition, and what the task attempt is sent."""

    def __init__(
        self,
        policy: DataLossPolicy = HALT,
        entry: LedgerEntry | None = CLOSED,
        existing: ExistingRecordsPolicy = ExistingRecordsPolicy.ADOPT,
        membership: GroupMembership | None = None,
        untransformed_topics: tuple[str, ...] = (),
        remote: str = TARGET.topic,
        is_exactly_once: bool = False,
    ) -> None:
        self.clusters = ScriptedClusters.scripted()
        self.ledger, self.lock, self.events = InMemoryLedger(), threading.Lock(), EventLog()
        self.cache = LedgerCache(self.ledger, self.lock)
        self.cache.entries = {SOURCE: entry} if entry else {}
        delivery = DeliveryMode.EXACTLY_ONCE if is_exactly_once else DeliveryMode.SEQUENCED
        job = copy_job(
            (SOURCE,),
            on_loss=policy,
            on_existing=existing,
            untransformed_topics=untransformed_topics,
            delivery=delivery,
        )
        job = replace(job, settings=replace(job.settings, transforms=DROP_MARKED))
        finder = ResumePointFinder(job, self.clusters, ScriptedFences(self.clusters))
        self.routed_topics = ScriptedRoutedTopics(self.clusters)
        self.granter = LeaseGranter(
            *(self.clusters, finder, self.cache, self.events, policy, membership),
            self.routed_topics,
        )
        self.tracked = TrackedPartition(SOURCE, TopicPartition(remote, 0), 0)
        self.sent: list[ControlMessage] = []

    def grant(self) -> None:
        attempt = TaskAttempt(HELLO, self.sent.append, 0.0)
        self.granter.grant(attempt, [self.tracked], 10.0, self.lock)

    @property
    def granted(self) -> list[Lease]:
        return [lease for m in self.sent if isinstance(m, GrantLeases) for lease in m.leases]

    @property
    def event_kinds(self) -> list[str]:
        return [event.kind for event in self.events.latest()]


@pytest.mark.parametrize(
    ("kind", "skip", "restart"),
    [
        (LossKind.RETENTION, 120, 5),
        (LossKind.TRUNCATED, 90, 5),
        (LossKind.RECREATED, 5, 5),
        (LossKind.REMOTE_RECREATED, 100, 5),
    ],
)
def test_a_loss_halts_or_moves_the_position_by_policy(
    kind: LossKind, skip: int, restart: int
) -> None:
    loss = DataLoss(kind=kind, lost_from=90, lost_to=120, text="x", start=5, position=100)
    halted = decide_loss(loss, HALT)
    assert halted == LossDecision(event_text="x; copying stops", halt_reason=halted.halt_reason)
    for choice in ("sparkmirror.on.loss=skip", "sparkmirror.on.loss=restart"):
        assert choice in halted.halt_reason, "the operator learns the key and its values"
    assert decide_loss(loss, SKIP) == LossDecision(
        event_text=f"x; going on at offset {skip}", position=skip
    )
    assert decide_loss(loss, RESTART).position == restart


def test_a_ready_partition_is_granted_after_its_open_entry_is_stored() -> None:
    granting = Granting()
    granting.grant()
    assert [lease.position for lease in granting.granted] == [100]
    assert (granting.tracked.state, granting.tracked.owner) == (LeaseState.LEASED, HELLO)
    stored = granting.ledger.entries[SOURCE].extension
    assert stored
    assert stored.is_open


@pytest.mark.parametrize("untransformed", [(), ("t",)])
def test_the_lease_of_a_topic_that_is_not_transformed_has_no_chain(
    untransformed: tuple[str, ...],
) -> None:
    granting = Granting(untransformed_topics=untransformed)
    granting.grant()
    (lease,) = granting.granted
    settings = CopySettings(transforms=DROP_MARKED)
    assert lease.chain == ("" if untransformed else settings.chain)
    converter = ConverterFactory.for_settings(settings).new_converter(lease, TargetLimits(), {})
    assert isinstance(converter, TransformingConverter) is not bool(untransformed)


def test_a_membership_that_ends_during_the_calls_to_the_clusters_grants_nothing() -> None:
    granting = Granting(membership=GroupMembership(is_required=True))
    granting.grant()
    assert granting.granted == []
    assert granting.tracked.state is LeaseState.WAITING


def test_a_ledger_that_cannot_be_written_grants_nothing() -> None:
    granting = Granting()
    granting.ledger.error = ClusterUnavailable("A", "down")
    with pytest.raises(ClusterUnavailable):
        granting.grant()
    assert granting.granted == []
    assert granting.tracked.state is LeaseState.WAITING


@pytest.mark.parametrize(("policy", "position"), [(HALT, None), (SKIP, 0), (RESTART, 0)], ids=str)
def test_a_recreated_source_topic_halts_or_restarts(
    policy: DataLossPolicy, position: int | None
) -> None:
    granting = Granting(policy)
    granting.clusters.topic_id = "new"
    granting.cache.entries[SOURCE] = _with_ids(CLOSED, "old", "new")
    granting.grant()
    assert granting.event_kinds == ["recreated"]
    assert [lease.position for lease in granting.granted] == ([] if position is None else [0])
    assert granting.tracked.is_halted == (policy is HALT)
    if policy is HALT:
        assert granting.tracked.view(0.0).end == -1, "the new topic says nothing about the position"


@pytest.mark.parametrize(("policy", "position"), [(HALT, None), (SKIP, 100), (RESTART, 0)], ids=str)
def test_a_recreated_remote_topic_halts_or_is_filled_from_the_policys_position(
    policy: DataLossPolicy, position: int | None
) -> None:
    granting = Granting(policy)
    granting.clusters.topic_id, granting.clusters.target_end = "new", 0
    granting.cache.entries[SOURCE] = _with_ids(CLOSED, "new", "old")
    granting.grant()
    (event,) = granting.events.latest()
    assert (event.kind, event.lost_from, event.lost_to) == ("remote-recreated", 0, 100)
    assert [(lease.position, lease.expected) for lease in granting.granted] == (
        [] if position is None else [(position, 0)]
    )


OPEN = entry_for_lease(STORED, is_open=True)
TRANSACTIONAL = entry_for_lease(STORED.as_transactional(), is_open=False)


@pytest.mark.parametrize("entry", [CLOSED, OPEN, TRANSACTIONAL], ids=["closed", "open", "tx"])
@pytest.mark.parametrize("policy", DataLossPolicy)
@pytest.mark.parametrize("is_exactly_once", [False, True])
def test_a_remote_topic_with_another_name_goes_on_at_the_position_and_nothing_is_lost(
    entry: LedgerEntry,
    policy: DataLossPolicy,
    is_exactly_once: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    granting = Granting(policy, remote="routed.t", is_exactly_once=is_exactly_once)
    granting.clusters.topic_id, granting.clusters.target_end = "new", 7
    granting.cache.entries[SOURCE] = _with_ids(entry, "new", "old")
    granting.tracked.add_run(0, 0, 50)
    granting.grant()
    (lease,) = granting.granted
    assert (lease.target.topic, lease.position, lease.expected) == ("routed.t", 100, 7)
    assert lease.is_transactional == is_exactly_once
    assert lease.is_transactional or lease.identity.anchor == 7
    assert granting.event_kinds == []
    assert len(granting.tracked.runs) == 0
    assert "t: its remote topic was A.t and is routed.t now" in caplog.text
    stored = granting.ledger.entries[SOURCE].extension
    assert stored
    assert (stored.stored_remote, stored.target_topic_id) == ("routed.t", "new")


def test_the_name_of_a_remote_topic_is_stored_unless_it_is_the_default_name() -> None:
    for remote, topic_id, stored_name in [
        ("A.t", "s", ""),
        ("A-t", "s", "A-t"),
        ("t", "s", "t"),
        ("A.t", "", "A.t"),
    ]:
        granting = Granting(entry=None, remote=remote)
        granting.clusters.topic_id, granting.clusters.target_end = topic_id, 0
        granting.grant()
        stored = granting.ledger.entries[SOURCE].extension
        assert stored
        assert stored.stored_remote == stored_name
        again = Granting(entry=granting.ledger.entries[SOURCE], remote=remote)
        again.clusters.topic_id = topic_id
        again.granter.resolve([again.tracked], 10.0, again.lock)
        assert again.tracked.state is LeaseState.DOUBTFUL, "the entry is open, its topic the same"


def test_a_former_owner_may_give_back_what_it_copied_to_the_topic_with_the_old_name() -> None:
    membership = GroupMembership(is_required=True)
    membership.renew(1e12, is_alone=False)
    granting = Granting(entry=None, remote="routed.t", membership=membership)
    granting.clusters.topic_id = "new"
    shared = entry_for_lease(replace(STORED, conductor="other", task=0), is_open=True)
    granting.ledger.save({SOURCE: _with_ids(shared, "new", "old")})
    granting.cache.conductor = "own"
    granting.grant()
    assert granting.granted == []
    assert "former owner" in granting.tracked.reason


@pytest.mark.parametrize(
    ("policy", "position"), [(HALT, None), (SKIP, 120), (RESTART, 120)], ids=str
)
def test_deleted_records_halt_or_are_skipped(policy: DataLossPolicy, position: int | None) -> None:
    granting = Granting(policy)
    granting.clusters.source_range = LogRange(start=120, end=200, high_watermark=200)
    granting.grant()
    (event,) = granting.events.latest()
    assert (event.kind, event.lost_from, event.lost_to) == ("retention", 100, 120)
    assert "100 to 119" in event.text
    assert [lease.position for lease in granting.granted] == (
        [] if position is None else [position]
    )
    assert ("100 to 119" in granting.tracked.reason) == (policy is HALT)


@pytest.mark.parametrize(("policy", "position"), [(HALT, None), (SKIP, 70), (RESTART, 0)], ids=str)
def test_a_truncated_source_halts_or_resumes_where_it_was_truncated(
    policy: DataLossPolicy, position: int | None
) -> None:
    granting = Granting(policy)
    extension = CLOSED.extension
    assert extension
    entry = replace(CLOSED, extension=replace(extension, source_epoch=3))
    granting.cache.entries[SOURCE] = entry
    granting.clusters.epoch_end = 70
    granting.grant()
    (event,) = granting.events.latest()
    assert (event.kind, event.lost_from, event.lost_to) == ("truncated", 70, 100)
    assert [lease.position for lease in granting.granted] == (
        [] if position is None else [position]
    )


def test_a_doubtful_partition_is_not_granted() -> None:
    granting = Granting(entry=entry_for_lease(STORED, is_open=True))
    granting.grant()
    assert granting.granted == []
    assert granting.tracked.state is LeaseState.DOUBTFUL


def test_an_unanswered_query_holds_the_partition_and_it_is_tried_again() -> None:
    granting = Granting()
    granting.clusters.target_end = ErrorCode.NOT_LEADER_OR_FOLLOWER
    granting.grant()
    assert granting.granted == []
    assert granting.tracked.reason == "target: A.t-0: NOT_LEADER_OR_FOLLOWER (6)"
    granting.clusters.target_end = 50
    granting.tracked.end_hold_if_due(1e9)
    granting.grant()
    assert len(granting.granted) == 1


def test_unknown_limits_hold_the_partition_until_they_are_known() -> None:
    granting = Granting()
    granting.clusters.limits = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    granting.grant()
    assert granting.tracked.reason == "target: A.t: UNKNOWN_TOPIC_OR_PARTITION (3)"
    granting.clusters.limits = ScriptedClusters.limits
    granting.tracked.end_hold_if_due(1e9)
    granting.grant()
    assert len(granting.granted) == 1


def _with_ids(entry: LedgerEntry, source_id: str, target_id: str) -> LedgerEntry:
    assert entry.extension
    extension = replace(entry.extension, source_topic_id=source_id, target_topic_id=target_id)
    return replace(entry, extension=extension)


@pytest.mark.parametrize(
    ("policy", "position"),
    [(ExistingRecordsPolicy.APPEND, 0), (ExistingRecordsPolicy.HALT, None)],
)
def test_existing_records_without_a_position_are_appended_to_or_halt(
    policy: ExistingRecordsPolicy, position: int | None
) -> None:
    granting = Granting(entry=None, existing=policy)
    granting.clusters.target_range = LogRange(start=0, end=50, high_watermark=50)
    granting.grant()
    granting.tracked.end_hold_if_due(1e9)
    assert [lease.position for lease in granting.granted] == ([] if position is None else [0])
    assert granting.event_kinds == ["existing-records"]
    assert granting.tracked.is_halted == (position is None)
    assert ("sparkmirror.on.existing" in granting.tracked.reason) == (position is None)
    assert bool(granting.ledger.entries) == (position is not None)


def test_a_remote_partition_that_cannot_be_queried_is_tried_again() -> None:
    granting = Granting(entry=None)
    granting.clusters.target_range = ErrorCode.NOT_LEADER_OR_FOLLOWER
    granting.grant()
    assert granting.tracked.reason == "target: A.t-0: NOT_LEADER_OR_FOLLOWER (6)"
    assert not granting.tracked.is_halted


def test_metadata_is_requested_once_for_partitions_of_several_tasks_and_grants() -> None:
    count = 2 * MAX_PARTITIONS_PER_GRANT + 1
    sources = [TopicPartition("t", number) for number in range(count)]
    clusters, ledger, lock = ScriptedClusters.scripted(), InMemoryLedger(), threading.Lock()
    job = copy_job(tuple(sources[:10]), tuple(sources[10:]))
    granter = LeaseGranter(
        clusters,
        ResumePointFinder(job, clusters, ScriptedFences(clusters)),
        LedgerCache(ledger, lock),
        EventLog(),
        HALT,
    )
    partitions = [
        TrackedPartition(source, job.remote_partition(source), task)
        for source, task in job.task_of_partition().items()
    ]
    granter.resolve(partitions, 10.0, lock)
    sent: list[ControlMessage] = []
    for task in (0, 1):
        attempt = TaskAttempt(replace(HELLO, task=task), sent.append, 0.0)
        granter.grant(attempt, [p for p in partitions if p.task == task], 10.0, lock)
    assert clusters.metadata_requests == 2, "one for each cluster"
    assert {tracked.state for tracked in partitions} == {LeaseState.LEASED}
    assert [len(write) for write in ledger.writes] == [10, 500, 491]


def test_a_partition_whose_resume_point_is_not_known_now_is_asked_for_once() -> None:
    granting = Granting()
    granting.clusters.target_end = ErrorCode.NOT_LEADER_OR_FOLLOWER
    granting.granter.resolve([granting.tracked], 10.0, granting.lock)
    assert granting.tracked.state is LeaseState.HELD
    granting.clusters.target_end = 50
    granting.grant()
    assert granting.tracked.state is LeaseState.HELD, "it is tried again after its backoff"


def test_a_grant_names_the_topics_that_transformations_send_records_to() -> None:
    granting = Granting()
    granting.tracked.wanted_topic = "late"
    granting.routed_topics.found = RoutedTopicsFound({"late": 1, "old": 3}, {})
    granting.grant()
    (message,) = granting.sent
    assert isinstance(message, GrantLeases)
    assert message.routed_topics == {"late": 1, "old": 3}
    assert message.target_limits.keys() == {"A.t", "late", "old"}
    assert granting.tracked.wanted_topic == ""


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (RoutedTopicsFound({}, {"late": NotAuthorized("B", "no Create")}), "B: no Create;"),
        (RoutedTopicsFound({"late": 0}, {}), "it has too few partitions;"),
    ],
)
def test_a_partition_whose_next_record_has_no_topic_is_held_with_the_reason(
    found: RoutedTopicsFound, text: str
) -> None:
    granting = Granting()
    granting.tracked.wanted_topic = "late"
    granting.routed_topics.found = found
    granting.grant()
    assert granting.sent == []
    assert granting.tracked.state is LeaseState.HELD
    assert f"records to late, which cannot be used: {text}" in granting.tracked.reason
    assert granting.tracked.wanted_topic == "late", "it is asked for again after the hold"

"""Task events: what the driver does with a partition when its task reports, ends or disappears."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest

from sparkmirror.copy.control.messages import (
    AbortTask,
    ControlMessage,
    Drain,
    EpochEnded,
    Hello,
    LeaseEnded,
    LeaseEndReason,
    LeaseProgress,
    ProgressReport,
    RevokeLeases,
    SetRateLimit,
    TaskDone,
    Welcome,
)
from sparkmirror.copy.driver.job_partitions import JobPartitions, waiting_reason
from sparkmirror.copy.driver.lease_end_actions import LeaseEndAction, lease_end_action
from sparkmirror.copy.driver.lease_grants import LeaseGranter
from sparkmirror.copy.driver.ledger_cache import LedgerCache
from sparkmirror.copy.driver.lost_attempt_receipts import LostAttemptReceipts
from sparkmirror.copy.driver.monitoring.event_log import EventLog
from sparkmirror.copy.driver.offset_translation_publisher import OffsetTranslationPublisher
from sparkmirror.copy.driver.resume.resume_point_finder import ResumePointFinder
from sparkmirror.copy.driver.sharing.worker_group_membership import (
    RENEWALS_AFTER_FENCE,
    GroupMembership,
)
from sparkmirror.copy.driver.task_attempts import TaskAttempt
from sparkmirror.copy.driver.task_events import TaskEventHandler
from sparkmirror.copy.driver.tracked_partition import LeaseState, TrackedPartition
from sparkmirror.copy.job import DataLossPolicy
from sparkmirror.copy.lease import (
    NOT_IDEMPOTENT,
    TRANSACTIONAL_IDENTITY,
    Lease,
    LeaseIdentity,
)
from sparkmirror.copy.receipt import AttemptEpoch
from sparkmirror.copy.record_ages import AgeSummary, RecordAges
from sparkmirror.copy.transactional_producer_config import TransactionalProducer
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.protocol.producer_ids import ProducerIdAndEpoch
from tests.support.copy.pending_batches import make_lease
from tests.support.copy.scripted_clusters import (
    InMemoryLedger,
    ScriptedClusters,
    ScriptedFences,
    copy_job,
)

P0, P1, P2 = (TopicPartition("t", number) for number in range(3))
IDENTITY = LeaseIdentity(producer_id=7, producer_epoch=1, anchor=0)
WITHOUT_PRODUCER_ID = replace(IDENTITY, producer_id=NOT_IDEMPOTENT, producer_epoch=-1)
NOTHING, REOPEN, RETRY = LeaseEndAction
PRODUCER = TransactionalProducer(
    transactional_id="g-c-0",
    identity=ProducerIdAndEpoch(7, 1),
    transaction_version=2,
    connector="c",
    offsets_topic="offsets",
    commit_interval_s=0.1,
)


class Driver:
    """A handler with two tasks, and what their attempts are sent."""

    def __init__(self, identity: LeaseIdentity = IDENTITY) -> None:
        self.clusters = clusters = ScriptedClusters.scripted()
        job = copy_job((P0, P1), (P2,), task_timeout_s=10.0)
        finder = ResumePointFinder(job, clusters, ScriptedFences(clusters))
        self.cache = LedgerCache(InMemoryLedger(), threading.Lock())
        events, progress = EventLog(), OffsetTranslationPublisher(None, None)
        self.granter = LeaseGranter(clusters, finder, self.cache, events, job.on_loss)
        self.handler = TaskEventHandler(
            job_partitions=JobPartitions(job=job, ledger_cache=self.cache, progress=progress),
            ledger_cache=self.cache,
            events=events,
            progress=progress,
            resume_points=finder,
            lease_granter=self.granter,
            pending_receipts=LostAttemptReceipts(lambda: 0),
            may_fence=lambda _: self.has_fences,
        )
        self.has_fences = True
        self.identity = identity
        self.sent: dict[Hello, list[ControlMessage]] = {}

    def share(self) -> None:
        """Share the connector with other workers."""
        job = replace(self.handler.job, is_shared=True)
        self.handler.job_partitions.job = job
        self.handler.membership = GroupMembership(is_required=True)

    def join(self, task: int = 0, attempt: int = 0, at: float = 0.0) -> Hello:
        hello = Hello(task=task, attempt=attempt, host="h", pid=1)
        self.sent[hello] = []
        self.handler.on_joined(TaskAttempt(hello, self.sent[hello].append, at))
        return hello

    def grant(self, hello: Hello, *partitions: TopicPartition) -> None:
        for partition in partitions:
            tracked = self.tracked(partition)
            tracked.set_lease(
                Lease(
                    source=partition,
                    target=tracked.target,
                    position=100,
                    expected=50,
                    identity=self.identity,
                )
            )
            tracked.grant_to(hello)

    def tracked(self, partition: TopicPartition) -> TrackedPartition:
        return self.handler.partitions[partition]

    def end(
        self,
        hello: Hello,
        reason: LeaseEndReason,
        *,
        is_clean: bool = True,
        records: int = 10,
        partition: TopicPartition = P0,
    ) -> TrackedPartition:
        self.handler.on_message(
            hello,
            LeaseEnded(
                partition=str(partition),
                reason=reason,
                message="the reason",
                position=100 + records,
                expected=50 + records,
                records=records,
                is_clean=is_clean,
            ),
        )
        return self.tracked(partition)

    def revoked(self, hello: Hello) -> list[RevokeLeases]:
        return [m for m in self.sent[hello] if isinstance(m, RevokeLeases)]

    def states(self) -> list[str]:
        return [self.tracked(partition).state.value for partition in (P0, P1, P2)]


@pytest.mark.parametrize(
    ("reason", "action", "if_transaction_is_doubtful"),
    [
        (LeaseEndReason.CLOSED, NOTHING, NOTHING),
        (LeaseEndReason.AMBIGUOUS, NOTHING, NOTHING),
        (LeaseEndReason.FENCED, NOTHING, NOTHING),
        (LeaseEndReason.OUT_OF_RANGE, REOPEN, NOTHING),
        (LeaseEndReason.SOURCE_GONE, REOPEN, NOTHING),
        (LeaseEndReason.TARGET_GONE, REOPEN, NOTHING),
        (LeaseEndReason.REFUSED, RETRY, RETRY),
        (LeaseEndReason.NOT_AUTHORIZED, RETRY, RETRY),
        (LeaseEndReason.CODEC_REFUSED, NOTHING, NOTHING),
        (LeaseEndReason.TOPIC_WANTED, NOTHING, NOTHING),
    ],
)
def test_the_reason_decides_what_follows_the_end_of_a_lease(
    reason: LeaseEndReason, action: LeaseEndAction, if_transaction_is_doubtful: LeaseEndAction
) -> None:
    assert lease_end_action(reason, is_transaction_doubtful=False) is action
    assert lease_end_action(reason, is_transaction_doubtful=True) is if_transaction_is_doubtful


def test_a_clean_end_leaves_the_lease_to_the_next_owner() -> None:
    driver = Driver()
    hello = driver.join()
    driver.grant(hello, P0)
    tracked = driver.end(hello, LeaseEndReason.CLOSED)
    assert tracked.state is LeaseState.WAITING
    assert tracked.lease
    assert (tracked.lease.position, tracked.lease.identity) == (110, IDENTITY)
    assert driver.handler.events.latest() == ()


def test_an_unclean_end_is_doubtful() -> None:
    driver = Driver()
    hello = driver.join()
    driver.grant(hello, P0)
    tracked = driver.end(hello, LeaseEndReason.AMBIGUOUS, is_clean=False)
    assert tracked.state is LeaseState.DOUBTFUL
    assert [event.kind for event in driver.handler.events.latest()] == ["ambiguous"]


def test_a_position_out_of_range_needs_a_new_resume_point_after_a_hold() -> None:
    driver = Driver()
    hello = driver.join()
    driver.grant(hello, P0)
    tracked = driver.end(hello, LeaseEndReason.OUT_OF_RANGE)
    assert (tracked.state, tracked.needs_resume_point) == (LeaseState.HELD, True)
    tracked.end_hold_if_due(1e12)
    assert tracked.state is LeaseState.WAITING
    entry = driver.cache.entries[P0]
    assert entry.extension
    assert (entry.position, entry.extension.is_open) == (110, False)


def test_an_unclean_end_out_of_range_is_an_open_entry() -> None:
    driver = Driver()
    hello = driver.join()
    driver.grant(hello, P0)
    driver.end(hello, LeaseEndReason.TARGET_GONE, is_clean=False)
    entry = driver.cache.entries[P0]
    assert entry.extension
    assert entry.extension.is_open, "the takeover decides where copying resumes"


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_refused_record_is_held_and_published_once(is_clean: bool) -> None:
    driver = Driver()
    hello = driver.join()
    after = LeaseState.WAITING if is_clean else LeaseState.DOUBTFUL
    for _ in range(3):
        driver.grant(hello, P0)
        tracked = driver.end(hello, LeaseEndReason.REFUSED, is_clean=is_clean, records=0)
        assert (tracked.state, tracked.reason) == (LeaseState.HELD, "the reason")
        tracked.end_hold_if_due(1e12)
        assert tracked.state is after
    assert [event.kind for event in driver.handler.events.latest()] == ["refused"]


def test_a_failed_transaction_takes_the_producer_of_its_task() -> None:
    driver = Driver(TRANSACTIONAL_IDENTITY)
    hello = driver.join()
    attempt = driver.handler.attempts.find(hello)
    assert attempt
    attempt.transactional_producer = PRODUCER
    driver.grant(hello, P0, P1)
    driver.end(hello, LeaseEndReason.CLOSED)
    assert attempt.transactional_producer is PRODUCER, "a clean end was committed"
    assert driver.cache.entries[P0].position == 110
    driver.grant(hello, P0)
    driver.end(hello, LeaseEndReason.FENCED, is_clean=False)
    assert attempt.transactional_producer is None


def test_a_partition_that_another_conductor_has_fenced_waits_for_renewals() -> None:
    driver = Driver()
    driver.share()
    hello = driver.join()
    driver.grant(hello, P0)
    driver.end(hello, LeaseEndReason.FENCED, is_clean=False)
    assert driver.tracked(P0).renewals_needed == RENEWALS_AFTER_FENCE


def test_a_task_whose_ids_another_conductor_has_fenced_begins_again() -> None:
    """Task 0 has lost its ids, task 1 has not."""
    driver = Driver(TRANSACTIONAL_IDENTITY)
    driver.share()
    hellos = driver.join(0), driver.join(1)
    for attempt in driver.handler.attempts:
        attempt.transactional_producer = PRODUCER
    driver.grant(hellos[0], P0)
    driver.grant(hellos[1], P2)
    driver.handler.on_ids_lost(lambda task: task == 1)
    assert driver.sent[hellos[0]][-1] == RevokeLeases(partitions=[str(P0)])
    assert not isinstance(driver.sent[hellos[1]][-1], RevokeLeases)
    producers = [attempt.transactional_producer for attempt in driver.handler.attempts]
    assert producers == [None, PRODUCER]
    waiting = driver.tracked(P1)
    assert waiting.needs_resume_point
    assert waiting.renewals_needed == RENEWALS_AFTER_FENCE
    driver.handler.on_attempt_lost(hellos[0], "x")
    driver.handler.on_ids_lost(lambda task: task == 1)
    assert driver.tracked(P0).renewals_needed == RENEWALS_AFTER_FENCE
    assert driver.tracked(P2).renewals_needed == 0


def test_a_lost_attempt_leaves_doubtful_partitions_and_must_abort() -> None:
    driver = Driver()
    hello, other = driver.join(0), driver.join(1)
    driver.grant(hello, P0, P1)
    driver.grant(other, P2)
    driver.handler.on_attempt_lost(hello, "x")
    assert driver.handler.snapshot(0.0).lost_attempts == 1
    assert driver.states() == ["doubtful", "doubtful", "leased"]
    assert driver.sent[hello][-1] == AbortTask(reason="x")
    driver.end(hello, LeaseEndReason.CLOSED)
    assert driver.states()[0] == "doubtful", "its messages are ignored from then on"


def test_a_later_attempt_replaces_an_earlier_one_of_its_task() -> None:
    driver = Driver()
    first = driver.join(attempt=0)
    driver.grant(first, P0)
    second = driver.join(attempt=1)
    assert isinstance(driver.sent[first][-1], AbortTask)
    assert [type(message) for message in driver.sent[second]] == [Welcome]
    assert driver.states()[0] == "doubtful"


def test_messages_of_a_replaced_attempt_do_not_count_for_the_later_one() -> None:
    driver = Driver()
    first = driver.join(attempt=0)
    second = driver.join(attempt=1, at=100.0)
    driver.grant(second, P0)
    driver.handler.on_message(first, TaskDone())
    assert driver.states()[0] == "leased"
    driver.handler.expire_silent(110.1)
    assert driver.sent[second][-1] == AbortTask(reason="no message for 10 s")


def test_a_silent_attempt_is_lost_after_the_task_timeout() -> None:
    driver = Driver()
    hello = driver.join(at=100.0)
    driver.grant(hello, P0)
    driver.handler.expire_silent(110.0)
    assert driver.states()[0] == "leased"
    driver.handler.expire_silent(110.1)
    assert driver.states()[0] == "doubtful"
    assert driver.sent[hello][-1] == AbortTask(reason="no message for 10 s")


def test_a_finished_task_never_used_what_it_still_owns() -> None:
    driver = Driver()
    hello = driver.join()
    driver.grant(hello, P0)
    driver.handler.on_message(hello, TaskDone())
    assert driver.states()[0] == "waiting"
    assert driver.handler.attempts.find(hello) is None


def test_reports_count_only_for_partitions_that_the_attempt_owns() -> None:
    driver = Driver()
    hello, other = driver.join(0), driver.join(1)
    driver.grant(hello, P0)
    progress = LeaseProgress(position=105, expected=55, records=5, end_offset=120, leader_epoch=3)
    ages = RecordAges(AgeSummary(5, 50, 1, 20, 10), AgeSummary(5, 60, 2, 30, 12))
    report = ProgressReport(
        progress={str(P0): progress},
        runs=[(str(P0), 100, 50, 5)],
        bytes={str(P0): 700},
        ages={str(P0): ages},
        suppressed={str(P0): 2},
    )
    driver.handler.on_message(other, report)
    assert driver.tracked(P0).view(0.0).position == 100
    driver.handler.on_message(hello, report)
    view = driver.tracked(P0).view(0.0)
    assert (view.position, view.expected, view.records, view.bytes, view.end) == (
        *(105, 55, 5, 700),
        120,
    )
    assert (view.ages, view.suppressed) == (ages, 2)
    assert [tuple(run) for run in driver.tracked(P0).runs] == [(100, 50, 5)]


def test_drained_means_nothing_is_leased_and_later_attempts_get_nothing() -> None:
    driver = Driver()
    hello = driver.join()
    driver.grant(hello, P0)
    driver.handler.drain()
    assert driver.sent[hello][-1] == Drain()
    before = driver.handler.is_drained
    driver.end(hello, LeaseEndReason.CLOSED)
    assert (before, driver.handler.is_drained) == (False, True)
    late = driver.join(1)
    assert driver.sent[late][-1] == Drain()


def test_the_end_of_an_epoch_drains_only_the_connected_attempts() -> None:
    driver = Driver()
    hello = driver.join()
    driver.handler.end_epoch()
    assert driver.sent[hello][-1] == Drain()
    later = driver.join(attempt=1)
    assert [type(message) for message in driver.sent[later]] == [Welcome]


def test_a_new_plan_revokes_only_what_moves() -> None:
    driver = Driver()
    hello, other = driver.join(0), driver.join(1)
    driver.grant(hello, P0, P1)
    driver.grant(other, P2)
    driver.handler.replan(replace(driver.handler.job, tasks={0: (P0,), 1: (P1, P2)}))
    assert driver.sent[hello][-1] == RevokeLeases(partitions=[str(P1)])
    assert [type(message) for message in driver.sent[other]] == [Welcome]
    assert driver.states() == ["leased", "leased", "leased"], "until the task gives it back"


def test_only_the_attempts_of_the_named_tasks_are_drained() -> None:
    driver = Driver()
    first, second = driver.join(0), driver.join(1)
    driver.handler.drain_tasks((1,))
    driver.handler.drain_tasks((1, 7))
    assert Drain() not in driver.sent[first]
    assert driver.sent[second].count(Drain()) == 1


def test_a_shared_partition_that_left_the_job_is_shown_until_its_entry_is_closed() -> None:
    driver = Driver()
    hello = driver.join()
    driver.grant(hello, P0)
    driver.handler.replan(replace(driver.handler.job, is_shared=True, tasks={0: (P1,), 1: (P2,)}))
    tracked = driver.end(hello, LeaseEndReason.CLOSED)
    assert tracked in driver.handler.job_partitions.unsettled()
    driver.handler.job_partitions.forget_unplanned([tracked])
    assert str(P0) in driver.handler.snapshot(0.0).partitions
    driver.cache.flush([tracked])
    driver.handler.job_partitions.forget_unplanned([tracked])
    assert P0 not in driver.handler.partitions


def test_a_partition_that_another_conductor_has_taken_is_forgotten_with_its_plan() -> None:
    driver = Driver()
    driver.grant(driver.join(), P0)
    driver.tracked(P0).give_up(renewals_needed=2)
    driver.handler.replan(replace(driver.handler.job, is_shared=True, tasks={1: (P1, P2)}))
    driver.handler.job_partitions.forget_unplanned(driver.handler.job_partitions.unsettled())
    assert P0 not in driver.handler.partitions, "its entry is not this conductor's to close"


def test_a_partition_that_left_the_job_is_hidden_and_reopened_when_it_returns() -> None:
    driver = Driver()
    hello = driver.join()
    driver.grant(hello, P0)
    job = driver.handler.job
    driver.handler.replan(replace(job, tasks={0: (P1,), 1: (P2,)}))
    assert str(P0) in driver.handler.snapshot(0.0).partitions, "its task still copies"
    driver.end(hello, LeaseEndReason.CLOSED)
    assert str(P0) not in driver.handler.snapshot(0.0).partitions
    driver.handler.replan(job)
    tracked = driver.tracked(P0)
    assert (tracked.task, tracked.needs_resume_point) == (0, True)
    assert driver.cache.entries[P0].position == 110


def test_a_new_plan_brings_its_loss_policy_and_its_new_partitions() -> None:
    driver = Driver()
    added = TopicPartition("t", 3)
    job = replace(driver.handler.job, on_loss=DataLossPolicy.SKIP, tasks={0: (P0, added), 1: (P1,)})
    driver.handler.replan(job)
    assert driver.granter.on_loss is DataLossPolicy.SKIP
    assert driver.tracked(added).target == TopicPartition("A.t", 3)


def test_another_loss_policy_decides_about_halted_partitions() -> None:
    driver = Driver()
    for partition in (P0, P1):
        driver.tracked(partition).set_lease(make_lease())
    driver.tracked(P0).hold("lost", 0.0, then=LeaseState.WAITING, forever=True)
    job = driver.handler.job
    driver.handler.replan(replace(job, tasks={0: (P0, P2), 1: (P1,)}))
    assert driver.tracked(P0).is_halted, "the policy is the same"
    driver.handler.replan(replace(job, on_loss=DataLossPolicy.SKIP))
    assert driver.tracked(P0).state is LeaseState.WAITING
    assert [driver.tracked(one).needs_resume_point for one in (P0, P1)] == [True, False]


def test_a_rate_limit_reaches_every_attempt_and_those_that_connect_later() -> None:
    driver = Driver()
    hello = driver.join(0)
    driver.handler.set_rate(500)
    assert driver.sent[hello][-1] == SetRateLimit(bytes_per_s=500)
    (welcome,) = driver.sent[driver.join(1)]
    assert isinstance(welcome, Welcome)
    assert welcome.settings["bytes_per_s"] == 500


# -- what operators see ----------------------------------------------------------------------------


def progress_report(end_offset: int, reason: str) -> ProgressReport:
    progress = LeaseProgress(
        position=100, expected=50, records=0, end_offset=end_offset, held_reason=reason
    )
    return ProgressReport(progress={str(P0): progress})


def test_a_report_is_shown_before_it_is_handled() -> None:
    driver = Driver()
    hello = driver.join()
    driver.grant(hello, P0)
    driver.handler.show_report(hello, progress_report(-1, "target: backup: down"))
    view = driver.tracked(P0).view(0.0)
    assert (view.reason, view.end, view.position) == ("target: backup: down", -1, 100)


def test_a_report_of_a_former_owner_is_not_shown() -> None:
    driver = Driver()
    old, new = driver.join(attempt=0), driver.join(attempt=1)
    driver.grant(new, P0)
    driver.handler.show_report(old, progress_report(5, "old"))
    assert driver.tracked(P0).view(0.0).reason == ""


def test_a_lag_of_0_needs_an_owner_that_reports() -> None:
    driver = Driver()
    now = time.monotonic()
    hello = driver.join(at=now)
    driver.grant(hello, P0)
    driver.handler.on_message(hello, progress_report(100, ""))
    assert driver.handler.snapshot(now + 1).partitions[str(P0)].end == 100
    assert driver.handler.snapshot(now + 60).partitions[str(P0)].end == -1


@pytest.mark.parametrize(
    ("state", "waited_s", "is_task_started", "error", "reason"),
    [
        (LeaseState.WAITING, 0, False, "", ""),
        (LeaseState.WAITING, 9, False, "", "Spark has not started task 0 yet"),
        (LeaseState.WAITING, 9, True, "", "the driver asks both clusters where to continue"),
        (LeaseState.WAITING, 0, True, "source: A: down", "source: A: down"),
        (LeaseState.DOUBTFUL, 0, True, "", ""),
        (LeaseState.DOUBTFUL, 9, True, "", "its last task did not end cleanly"),
        (LeaseState.DOUBTFUL, 0, True, "target: B: down", "target: B: down"),
        (LeaseState.LEASED, 9, True, "target: B: down", ""),
    ],
)
def test_a_partition_without_an_owner_says_what_it_waits_for(
    state: LeaseState, waited_s: int, is_task_started: bool, error: str, reason: str
) -> None:
    driver = Driver()
    tracked = driver.tracked(P0)
    tracked.state, tracked.last_owner = state, Hello(task=0, attempt=0, host="h", pid=1)
    found = waiting_reason(tracked, waited_s, is_task_started=is_task_started, error=error)
    assert found.startswith(reason) if reason else found == ""


def test_a_partition_that_never_had_an_owner_has_a_reason_at_once() -> None:
    views = Driver().handler.snapshot(0.0).partitions
    assert views[str(P2)].reason == "Spark has not started task 1 yet"
    assert views[str(P2)].end == -1


def test_a_refused_codec_is_avoided_in_later_leases() -> None:
    driver = Driver()
    hello = driver.join()
    driver.grant(hello, P0)
    driver.handler.on_message(
        hello,
        LeaseEnded(
            partition=str(P0),
            reason=LeaseEndReason.CODEC_REFUSED,
            message="the target refuses it",
            position=100,
            expected=50,
            records=0,
            is_clean=True,
            refused_codec=CompressionType.LZ4,
        ),
    )
    assert driver.tracked(P0).state is LeaseState.WAITING
    assert driver.handler.events.latest() == ()
    producer = driver.clusters.producer
    assert CompressionType.LZ4 not in producer.codecs
    assert producer.fallback_codec is CompressionType.NONE


def test_a_topic_that_records_go_to_is_remembered_until_the_next_grant() -> None:
    driver = Driver()
    hello = driver.join()
    driver.grant(hello, P0)
    driver.handler.on_message(
        hello,
        LeaseEnded(
            partition=str(P0),
            reason=LeaseEndReason.TOPIC_WANTED,
            message="the record at offset 100 goes to late",
            position=100,
            expected=50,
            records=0,
            is_clean=True,
            wanted_topic="late",
        ),
    )
    assert driver.tracked(P0).state is LeaseState.WAITING
    assert driver.tracked(P0).wanted_topic == "late"
    assert driver.handler.events.latest() == ()


@pytest.mark.parametrize(
    ("identity", "has_fences", "is_revoked"),
    [
        (IDENTITY, True, False),
        (IDENTITY, False, True),
        (WITHOUT_PRODUCER_ID, False, True),
        (WITHOUT_PRODUCER_ID, True, True),
        (TRANSACTIONAL_IDENTITY, True, False),
    ],
    ids=["fenced", "no-fence", "at-least-once", "producer-ids-are-new", "in-transactions"],
)
def test_a_worker_without_membership_takes_back_what_no_fence_would_stop(
    identity: LeaseIdentity, has_fences: bool, is_revoked: bool
) -> None:
    driver = Driver(identity)
    driver.has_fences = has_fences
    hello = driver.join()
    driver.grant(hello, P0, P1)
    for now in (1.0, 1.1, 1.2, 1.6):
        driver.handler.revoke_unfenceable(now)
    twice = [RevokeLeases(partitions=[str(P0), str(P1)])] * 2
    assert driver.revoked(hello) == (twice if is_revoked else []), "twice a second"


@pytest.mark.parametrize(
    ("identity", "events"), [(WITHOUT_PRODUCER_ID, ["ambiguous"]), (IDENTITY, ["ambiguous"] * 2)]
)
def test_without_producer_ids_a_lost_connection_is_one_event(
    identity: LeaseIdentity, events: list[str]
) -> None:
    driver = Driver(identity)
    hello = driver.join()
    driver.grant(hello, P0, P1)
    for partition in (P0, P1):
        driver.end(hello, LeaseEndReason.AMBIGUOUS, is_clean=False, partition=partition)
    assert [event.kind for event in driver.handler.events.latest()] == events
    assert driver.states()[:2] == ["doubtful", "doubtful"]


def test_what_is_reported_before_the_end_of_an_epoch_belongs_to_it() -> None:
    driver = Driver()
    hello = driver.join()
    driver.grant(hello, P0)

    def report(records: int) -> None:
        progress = LeaseProgress(
            position=100 + records, expected=50 + records, records=records, end_offset=200
        )
        driver.handler.on_message(hello, ProgressReport(progress={str(P0): progress}))

    report(5)
    driver.handler.on_message(hello, EpochEnded(epoch=0))
    report(7)
    assert driver.handler.partitions[P0].owner == hello, "its lease goes on"
    driver.handler.on_attempt_lost(hello, "x")
    receipts = driver.handler.pending_receipts
    assert [one.receipt.records for one in receipts.close_epoch(0, ())] == [5]
    assert receipts.close_epoch(1, {AttemptEpoch(0, hello.attempt)})[0].receipt.records == 2

"""What the conductor says and does while it waits, and for how long it waits."""

from __future__ import annotations

import time
from _collections_abc import dict_values
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from sparkmirror.copy.control.messages import ControlMessage, Hello, ProgressReport, RevokeLeases
from sparkmirror.copy.driver.conductor import (
    IDLE_TICK_S,
    MAX_TICK_S,
    MIN_WAIT_S,
    PROBE_INTERVAL_S,
    TICK_S,
    Conductor,
)
from sparkmirror.copy.driver.lease_grants import LeaseGranter
from sparkmirror.copy.driver.resume.resume_point_finder import ResumePointFinder
from sparkmirror.copy.driver.tracked_partition import LeaseState, TrackedPartition
from sparkmirror.copy.job import CopyJob
from sparkmirror.errors import ClusterUnavailable
from sparkmirror.model import TopicPartition
from tests.support.copy.pending_batches import make_lease, without_producer_id
from tests.support.copy.scripted_clusters import (
    InMemoryLedger,
    ScriptedClusters,
    ScriptedFences,
    copy_job,
)


def test_partitions_without_an_owner_show_why_the_conductor_waits() -> None:
    ledger = InMemoryLedger()
    conductor = Conductor(copy_job((TopicPartition("t", 0),)), ledger)
    before = conductor.snapshot().partitions["t-0"].reason
    ledger.on_retry(ClusterUnavailable("target", "a:1: connection refused"))
    shown = conductor.snapshot().partitions["t-0"].reason
    problems = conductor.problems()
    conductor.stop()
    assert before == "Spark has not started task 0 yet"
    assert shown == "target: target: a:1: connection refused"
    assert problems == [f"the driver cannot grant leases or write positions: {shown}"]


def test_a_snapshot_of_partitions_that_wait_for_spark_is_the_same_object_again() -> None:
    conductor = Conductor(copy_job((TopicPartition("t", 0),)), InMemoryLedger())
    first = conductor.snapshot()
    assert conductor.snapshot() is first
    conductor.stop()


def test_a_partition_that_was_given_back_leaves_the_snapshot() -> None:
    both = (TopicPartition("t", 0), TopicPartition("t", 1))
    conductor = Conductor(replace(copy_job(both), is_shared=True), InMemoryLedger())
    assert set(conductor.snapshot().partitions) == {"t-0", "t-1"}
    conductor.renew_membership(float("inf"), is_alone=False)
    conductor.replan(replace(copy_job(both[:1]), is_shared=True))
    conductor._run_inbox()
    conductor._tick(time.monotonic())
    assert set(conductor.snapshot().partitions) == {"t-0"}
    conductor.stop()


class RecordingConductor(Conductor):
    """Notes with which tasks it fences earlier drivers."""

    def __init__(self, job: CopyJob) -> None:
        super().__init__(job, InMemoryLedger())
        self.fenced_with: list[set[int]] = []

    def _fence_earlier_drivers(self, read_ledger: Callable[[], None]) -> None:
        self.fenced_with.append(set(self.job.tasks))
        super()._fence_earlier_drivers(read_ledger)

    def run_once(self) -> None:
        self._inbox.put(lambda: None)
        self._run_inbox()
        self._tick(time.monotonic())


def test_a_shared_conductor_without_tasks_fences_no_other_until_it_gets_one() -> None:
    job = replace(copy_job((TopicPartition("t", 0),)), is_shared=True)
    conductor = RecordingConductor(replace(job, tasks={}))
    conductor.renew_membership(float("inf"), is_alone=False)
    conductor.run_once()
    before = list(conductor.fenced_with)
    conductor.replan(job)
    conductor.run_once()
    conductor.run_once()
    conductor.stop()
    assert (before, conductor.fenced_with) == ([], [{0}])


class UnfencedConductor:
    """A conductor of a worker; its task has a lease without a producer id. No thread runs."""

    def __init__(self) -> None:
        self.sent: list[ControlMessage] = []
        partition = TopicPartition("orders", 0)
        job = replace(copy_job((partition,)), is_shared=True)
        self.conductor = Conductor(job, InMemoryLedger())
        self.hello = Hello(task=0, attempt=0, host="h", pid=1)
        self.conductor.on_task_joined(self.hello, self.sent.append)
        self.conductor._run_inbox()
        tracked = self.conductor._partitions[partition]
        tracked.set_lease(without_producer_id(make_lease(partition=0)))
        tracked.grant_to(self.hello)

    @property
    def revoked(self) -> list[str]:
        named = [m.partitions for m in self.sent if isinstance(m, RevokeLeases)]
        return [key for keys in named for key in keys]


@pytest.fixture
def unfenced() -> Iterator[UnfencedConductor]:
    made = UnfencedConductor()
    yield made
    made.conductor.stop()


def test_leases_that_no_fence_ends_are_taken_back_while_the_thread_waits_for_a_cluster(
    unfenced: UnfencedConductor,
) -> None:
    """No step of the thread runs here, as if it waited for a cluster."""
    conductor = unfenced.conductor
    conductor.renew_membership(time.monotonic() + 60, is_alone=False)
    conductor.on_task_message(unfenced.hello, ProgressReport(progress={}))
    as_member = list(unfenced.revoked)
    conductor.renew_membership(0.0, is_alone=False)
    conductor.on_task_message(unfenced.hello, ProgressReport(progress={}))
    assert (as_member, unfenced.revoked) == ([], ["orders-0"])


def test_leases_that_no_fence_ends_are_taken_back_while_the_next_try_is_not_due(
    unfenced: UnfencedConductor,
) -> None:
    now = time.monotonic()
    unfenced.conductor._problem.on_failure(ClusterUnavailable("target", "down"), now)
    unfenced.conductor._tick(now)
    assert unfenced.revoked == ["orders-0"]


def test_the_resume_points_of_all_tasks_are_found_together() -> None:
    partitions = [TopicPartition("t", number) for number in range(3)]
    job = copy_job(*((partition,) for partition in partitions))
    conductor, clusters = Conductor(job, InMemoryLedger()), ScriptedClusters.scripted()
    conductor._lease_granter = LeaseGranter(
        clusters,
        ResumePointFinder(job, clusters, ScriptedFences(clusters)),
        conductor._ledger_cache,
        conductor._events,
        job.on_loss,
    )
    for task in range(3):
        conductor.on_task_joined(Hello(task=task, attempt=0, host="h", pid=1), lambda _: None)
    conductor._run_inbox()
    conductor._tick(time.monotonic())
    assert {tracked.state for tracked in conductor._partitions.values()} == {LeaseState.LEASED}
    assert clusters.metadata_requests == 2, "one for each cluster"
    conductor.stop()


class WaitingConductor:
    """A conductor of a worker, a member until 1000 s from now. All it has is leased or new."""

    def __init__(self, *, is_leased: bool) -> None:
        self.partition = TopicPartition("orders", 0)
        job = replace(copy_job((self.partition,)), is_shared=True)
        self.conductor = Conductor(job, InMemoryLedger())
        self.tracked = self.conductor._partitions[self.partition]
        self.now = time.monotonic()
        self.conductor.renew_membership(self.now + 1000, is_alone=False)
        self.hello = Hello(task=0, attempt=0, host="h", pid=1)
        if is_leased:
            self.conductor.on_task_joined(self.hello, lambda _: None)
        self.run_inbox()
        if is_leased:
            self.tracked.set_lease(make_lease(partition=0))
            self.tracked.grant_to(self.hello)
        self.tick()

    def tick(self) -> None:
        self.conductor._tick(self.now)

    def run_inbox(self) -> None:
        self.conductor._run_inbox()

    def wait_s(self) -> float:
        return round(self.conductor._wait_s(self.now), 3)


@pytest.fixture
def leased() -> Iterator[WaitingConductor]:
    made = WaitingConductor(is_leased=True)
    yield made
    made.conductor.stop()


def test_a_conductor_that_is_prepared_wakes_rarely_and_asks_no_cluster() -> None:
    """It has no partition and no membership. A request would fail: there is no cluster here."""
    job = replace(copy_job((TopicPartition("t", 0),)), is_shared=True, tasks={})
    conductor = Conductor(job, InMemoryLedger())
    assert conductor._wait_s(time.monotonic()) == IDLE_TICK_S
    conductor._tick(time.monotonic())
    assert not conductor.problems()
    conductor.stop()


def test_a_conductor_whose_partitions_wait_for_spark_waits_too() -> None:
    waiting = WaitingConductor(is_leased=False)
    assert waiting.wait_s() == IDLE_TICK_S
    waiting.conductor.stop()


def test_a_conductor_whose_partitions_are_leased_waits_for_messages(
    leased: WaitingConductor,
) -> None:
    assert leased.wait_s() == IDLE_TICK_S


def test_a_conductor_with_a_partition_to_grant_does_not_wait(leased: WaitingConductor) -> None:
    leased.tracked.release(clean=True, now=leased.now)
    with leased.conductor._lock:
        leased.conductor._unsettled = leased.conductor._job_partitions.unsettled()
    waits = [leased.wait_s() for _ in range(6)]
    assert waits[0] == pytest.approx(TICK_S, rel=0.2)
    assert max(waits) == pytest.approx(MAX_TICK_S, rel=0.2), "it looks less often by and by"
    leased.conductor.set_rate(7)
    leased.run_inbox()
    assert leased.wait_s() == pytest.approx(TICK_S, rel=0.2), "a message may change something"


def test_a_conductor_wakes_for_the_flush_if_a_message_came(leased: WaitingConductor) -> None:
    leased.conductor._flush_at = leased.now + 3
    assert leased.wait_s() == IDLE_TICK_S, "there is nothing to flush"
    leased.conductor.set_rate(7)
    leased.run_inbox()
    assert leased.wait_s() == 3
    leased.conductor._flush_at = leased.now
    leased.tick()
    assert leased.wait_s() == IDLE_TICK_S


def test_a_conductor_wakes_when_an_attempt_has_been_silent_for_too_long(
    leased: WaitingConductor,
) -> None:
    (attempt,) = leased.conductor._task_events.attempts
    attempt.last_message_at = leased.now - leased.conductor.job.task_timeout_s + 2
    assert leased.wait_s() == 2


def test_a_conductor_wakes_when_its_membership_ends(leased: WaitingConductor) -> None:
    leased.conductor.renew_membership(leased.now + 4, is_alone=False)
    assert leased.wait_s() <= 4
    leased.conductor._membership._valid_until = time.monotonic() - 1
    assert leased.wait_s() == PROBE_INTERVAL_S


def test_a_moment_that_has_come_is_not_waited_for_in_a_loop(leased: WaitingConductor) -> None:
    leased.conductor._flush_at = 0.0
    leased.conductor._needs_flush = True
    assert leased.wait_s() == MIN_WAIT_S


def test_a_conductor_with_a_problem_tries_again_soon(leased: WaitingConductor) -> None:
    leased.conductor._problem.on_failure(ClusterUnavailable("target", "down"), leased.now)
    assert leased.wait_s() == PROBE_INTERVAL_S


@pytest.mark.parametrize(
    ("before_s", "after_s", "wakes"),
    [(100.0, 101.0, False), (-1.0, 100.0, True), (100.0, 50.0, True), (100.0, -1.0, True)],
    ids=["renewed", "after a lapse", "ends sooner", "has ended"],
)
def test_a_membership_that_changes_what_the_conductor_may_do_wakes_it(
    leased: WaitingConductor, before_s: float, after_s: float, wakes: bool
) -> None:
    leased.conductor.renew_membership(time.monotonic() + before_s, is_alone=False)
    while not leased.conductor._inbox.empty():
        leased.run_inbox()
    leased.conductor.renew_membership(time.monotonic() + after_s, is_alone=False)
    assert leased.conductor._inbox.empty() != wakes


class CountedPartitions(dict[TopicPartition, TrackedPartition]):
    """Counts how often all partitions are looked at."""

    scans = 0

    def values(self) -> dict_values[TopicPartition, TrackedPartition]:
        self.scans += 1
        return super().values()


def test_a_tick_looks_once_at_the_partitions_that_are_leased(leased: WaitingConductor) -> None:
    counted = CountedPartitions(leased.conductor._partitions)
    leased.conductor._job_partitions.tracked = counted
    leased.conductor._flush_at = float("inf")
    leased.tick()
    assert counted.scans == 1
    assert counted[leased.partition].state is LeaseState.LEASED

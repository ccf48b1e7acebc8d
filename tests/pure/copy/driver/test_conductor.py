"""What the conductor says and does while it waits for a cluster."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from sparkmirror.copy.control.messages import ControlMessage, Hello, ProgressReport, RevokeLeases
from sparkmirror.copy.driver.conductor import Conductor
from sparkmirror.errors import ClusterUnavailable
from sparkmirror.model import TopicPartition
from tests.support.copy.pending_batches import make_lease, without_producer_id
from tests.support.copy.scripted_clusters import InMemoryLedger, copy_job


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
    conductor._job_partitions.replan(replace(copy_job(both[:1]), is_shared=True))
    conductor._give_back()
    assert set(conductor.snapshot().partitions) == {"t-0"}
    conductor.stop()


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

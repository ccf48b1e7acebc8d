"""What the conductor says while it waits for a cluster."""

from __future__ import annotations

from dataclasses import replace

from sparkmirror.copy.driver.conductor import Conductor
from sparkmirror.errors import ClusterUnavailable
from sparkmirror.model import TopicPartition
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

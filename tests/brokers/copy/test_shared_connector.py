"""Conductors of several workers share one connector: each partition has one owner at a time.

A harness stands for the driver of one worker. The comparison of all records at the end of each test
is librdkafka's reading of both clusters.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from sparkmirror.copy.delivery import DeliveryMode
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.snapshot import CopySnapshot
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.model import TopicPartition
from tests.support.copy.copy_flow import CopyFlow, remote_topic_name
from tests.support.copy.copy_harness import HARNESS_TIMEOUT_S, CopyHarness
from tests.support.copy.exactly_once import wait_until_transactions_end
from tests.support.copy.harness_process import HarnessProcess
from tests.support.kafka.batch_writer import BatchWriter, numbered_records
from tests.support.kafka.bulk_reader import read_partitions
from tests.support.kafka.partition_log import log_start_and_end
from tests.support.kafka.wire_copier import make_router
from tests.support.waiting import wait_until

log = logging.getLogger(__name__)

PARTITIONS = 6
RECORDS = 300
SLOW: dict[str, Any] = {"bytes_per_s": 40_000}
"""So slow that a fault hits a running copy."""
SEQUENCED, EXACTLY_ONCE = DeliveryMode.SEQUENCED, DeliveryMode.EXACTLY_ONCE


def both_modes(first: DeliveryMode) -> pytest.MarkDecorator:
    """Run a test with this delivery mode, and with the other one in `make soak`."""
    other = DeliveryMode.EXACTLY_ONCE if first is SEQUENCED else SEQUENCED
    return pytest.mark.parametrize(
        "delivery", [first, pytest.param(other, marks=pytest.mark.soak)], ids=str
    )


class SharedConnector:
    """A topic and the jobs of the workers that copy it together."""

    def __init__(
        self,
        flow: CopyFlow,
        topic: str,
        clusters: tuple[Cluster, Cluster],
        writer: BatchWriter,
        delivery: DeliveryMode = SEQUENCED,
        **settings: Any,
    ) -> None:
        self.flow, self.topic, self.clusters, self.writer = flow, topic, clusters, writer
        self.topics = {topic: PARTITIONS}
        self.partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        flow.create_topic(topic, PARTITIONS)
        for partition in self.partitions:
            writer.write_batches(partition, numbered_records(range(RECORDS), size=1000), batch=20)
        self._job = flow.job(
            self.topics,
            delivery=delivery,
            commit_interval_s=0.3,
            settings=settings,
            is_shared=True,
        )

    def job(self, tasks: Mapping[int, tuple[int, ...]], task_count: int = 2) -> CopyJob:
        """The job of one worker: partition numbers by task."""
        return replace(
            self._job,
            task_count=task_count,
            tasks={
                task: tuple(self.partitions[number] for number in numbers)
                for task, numbers in tasks.items()
            },
        )

    def wait_until_copied(self, *workers: CopyHarness) -> None:
        """Copy the rest at full speed; wait until each partition is at its end in one worker."""
        ends = self.flow.source_end_offsets(self.topics)
        for worker in workers:
            worker.conductor.set_rate(0)

        def is_copied() -> bool:
            snapshots = [worker.snapshot for worker in workers]
            return all(
                any(has_reached(snapshot, key, end) for snapshot in snapshots)
                for key, end in ends.items()
            )

        wait_until(is_copied, "everything to be copied", HARNESS_TIMEOUT_S)

    def assert_every_record_once(self) -> None:
        """Compare both clusters as librdkafka reads them at read_committed."""
        wait_until_transactions_end(self.flow, self.topics)
        logs = [
            read_partitions(
                name,
                PARTITIONS,
                {
                    "bootstrap.servers": cluster.client_properties()["bootstrap.servers"],
                    "isolation.level": "read_committed",
                },
            )
            for name, cluster in zip(
                (self.topic, remote_topic_name(self.topic)), self.clusters, strict=True
            )
        ]
        source, copy = ([(one.partition, *one.content[1:]) for one in log] for log in logs)
        assert len(copy) == len(source)
        assert copy == source

    @contextmanager
    def written_all_the_time(self) -> Iterator[None]:
        """Write to all partitions until the end of the block."""
        is_over = threading.Event()

        def write() -> None:
            number = RECORDS
            while not is_over.wait(0.05):
                for partition in self.partitions:
                    self.writer.write_batch(partition, numbered_records([number], size=200))
                number += 1

        thread = threading.Thread(target=write)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()


def has_reached(snapshot: CopySnapshot, partition: str, end: int) -> bool:
    """Whether a partition is copied up to an offset."""
    view = snapshot.partitions.get(partition)
    return view is not None and view.position >= end


@pytest.fixture
def clusters(source: Cluster, target: Cluster) -> tuple[Cluster, Cluster]:
    return source, target


@both_modes(SEQUENCED)
def test_two_workers_copy_side_by_side_and_fence_at_the_same_time(
    flow: CopyFlow,
    topic: str,
    clusters: tuple[Cluster, Cluster],
    writer: BatchWriter,
    delivery: DeliveryMode,
) -> None:
    shared = SharedConnector(flow, topic, clusters, writer, delivery, **SLOW)
    with (
        flow.harness(shared.job({0: (0, 2, 4)})) as first,
        flow.harness(shared.job({1: (1, 3, 5)})) as second,
    ):
        for times in (1, 2):
            for worker in (first, second):
                worker.wait_until_all_tasks_copy()
                worker.wait_for_more_records()
            first.kill(0)
            second.kill(1)
            for worker in (first, second):
                worker.wait_for_event("takeover", times=3 * times)
        shared.wait_until_copied(first, second)
        for worker in (first, second):
            assert {event.kind for event in worker.snapshot.events} == {"takeover"}
            worker.drain()
    shared.assert_every_record_once()


@both_modes(EXACTLY_ONCE)
def test_a_killed_worker_is_replaced_while_the_others_go_on(
    flow: CopyFlow,
    topic: str,
    clusters: tuple[Cluster, Cluster],
    writer: BatchWriter,
    delivery: DeliveryMode,
) -> None:
    shared = SharedConnector(flow, topic, clusters, writer, delivery, **SLOW)
    with flow.harness(shared.job({1: (1, 3, 5)})) as survivor:
        with HarnessProcess(shared.job({0: (0, 2, 4)})) as killed:
            killed.wait_until_copied(30)
            killed.kill()
        survivor.replan(shared.job({0: (0, 2, 4), 1: (1, 3, 5)}))
        shared.wait_until_copied(survivor)
        taken = {event.partition for event in survivor.snapshot.events}
        assert taken <= {f"{topic}-{number}" for number in (0, 2, 4)}, "its own went on"
        survivor.drain()
    shared.assert_every_record_once()


def test_a_task_moves_to_another_worker_and_back_without_a_fence_while_records_flow(
    flow: CopyFlow,
    topic: str,
    clusters: tuple[Cluster, Cluster],
    writer: BatchWriter,
) -> None:
    shared = SharedConnector(flow, topic, clusters, writer)
    both, upper, lower = {0: (0, 1, 2), 1: (3, 4, 5)}, {0: (0, 1, 2)}, {1: (3, 4, 5)}
    router = make_router(flow.target)
    moved = TopicPartition(remote_topic_name(topic), 4)
    pauses: list[float] = []
    with (
        flow.harness(shared.job(both)) as first,
        flow.harness(shared.job({})) as second,
        shared.written_all_the_time(),
    ):
        first.wait_until_all_tasks_copy()
        for former, owner in ((first, second), (second, first), (first, second)):
            former.give_back(shared.job(upper if former is first else {}))
            end = log_start_and_end(router, moved)[1]
            began = time.monotonic()
            owner.replan(shared.job(both if owner is first else lower))

            def has_copied(end: int = end) -> bool:
                return log_start_and_end(router, moved)[1] > end

            wait_until(has_copied, "the next owner to copy", HARNESS_TIMEOUT_S)
            pauses.append(time.monotonic() - began)
        events = [*first.snapshot.events, *second.snapshot.events]
    log.info("Seconds from the end of a hand-over to the next record: %s", pauses)
    router.close()
    assert events == []
    with (
        flow.harness(shared.job(upper)) as first,
        flow.harness(shared.job(lower)) as second,
    ):
        shared.wait_until_copied(first, second)
        first.drain()
        second.drain()
    shared.assert_every_record_once()


@both_modes(SEQUENCED)
def test_a_worker_that_was_suspended_appends_nothing_and_fences_nothing(
    flow: CopyFlow,
    topic: str,
    clusters: tuple[Cluster, Cluster],
    writer: BatchWriter,
    delivery: DeliveryMode,
) -> None:
    """Driver and tasks of the former owner are resumed when the new owner has copied records."""
    shared = SharedConnector(flow, topic, clusters, writer, delivery, **SLOW)
    job = shared.job({0: (0, 2, 4), 1: (1, 3, 5)})
    with HarnessProcess(job) as former:
        former.wait_until_leased(PARTITIONS)
        former.wait_until_copied(60)
        former.suspend_as_lost_member()
        with flow.harness(job) as owner:
            owner.wait_until_all_tasks_copy()
            owner.wait_for_more_records()
            former.resume()
            former.wait_until_leased(0)
            shared.wait_until_copied(owner)
            assert "fenced" not in {event.kind for event in owner.snapshot.events}
            owner.drain()
    shared.assert_every_record_once()
    if delivery is SEQUENCED:
        copies = [copy for _, copy in flow.all_partition_logs(shared.partitions)]
        assert [len(copy.marker_offsets) for copy in copies] == [1] * PARTITIONS, (
            "one fence for each partition, by the new owner"
        )


@both_modes(EXACTLY_ONCE)
def test_two_owners_of_the_same_tasks_copy_nothing_twice(
    flow: CopyFlow,
    topic: str,
    clusters: tuple[Cluster, Cluster],
    writer: BatchWriter,
    delivery: DeliveryMode,
) -> None:
    """Both workers are members, and one of them does not know yet that the tasks have moved."""
    shared = SharedConnector(flow, topic, clusters, writer, delivery, **SLOW)
    job = shared.job({0: (0, 2, 4), 1: (1, 3, 5)})
    with flow.harness(job) as stale:
        stale.wait_until_all_tasks_copy()
        with flow.harness(job) as owner:
            with shared.written_all_the_time():  # the stale worker has records to append
                owner.wait_until_all_tasks_copy()
                stale.wait_for_event("fenced")
                owner.wait_for_more_records()
            stale.give_back(shared.job({}))
            shared.wait_until_copied(owner)
            owner.drain()
    shared.assert_every_record_once()


@both_modes(SEQUENCED)
def test_new_task_configs_move_partitions_between_tasks_of_two_workers(
    flow: CopyFlow,
    topic: str,
    clusters: tuple[Cluster, Cluster],
    writer: BatchWriter,
    delivery: DeliveryMode,
) -> None:
    """One worker follows the new configs at once, the other one late."""
    shared = SharedConnector(flow, topic, clusters, writer, delivery, **SLOW)
    with flow.harness(shared.job({0: (0, 1, 2, 3)})) as late:
        with flow.harness(shared.job({1: (4, 5)})) as before:
            for worker in (late, before):
                worker.wait_until_all_tasks_copy()
            before.drain()
        with flow.harness(shared.job({1: (2, 3, 4), 2: (5,)}, task_count=3)) as early:
            early.wait_until_all_tasks_copy()
            late.wait_for_more_records()
            late.give_back(shared.job({}))
            with flow.harness(shared.job({0: (0, 1)}, task_count=3)) as followed:
                shared.wait_until_copied(early, followed)
                followed.drain()
            early.drain()
    shared.assert_every_record_once()


def test_a_plain_owner_fences_tasks_that_another_worker_still_runs_in_transactions(
    flow: CopyFlow, topic: str, clusters: tuple[Cluster, Cluster], writer: BatchWriter
) -> None:
    """The connector needs no transactions any more, and one worker does not know it yet."""
    shared = SharedConnector(flow, topic, clusters, writer, EXACTLY_ONCE, **SLOW)
    with flow.harness(shared.job({0: tuple(range(PARTITIONS))})) as late:
        late.wait_until_all_tasks_copy()
        plain = replace(shared.job({1: tuple(range(PARTITIONS))}), delivery=SEQUENCED)
        with flow.harness(plain) as owner:
            with shared.written_all_the_time():  # the late worker has records to append
                owner.wait_until_all_tasks_copy()
                owner.wait_for_more_records()
            late.give_back(shared.job({}))
            shared.wait_until_copied(owner)
            owner.drain()
    shared.assert_every_record_once()

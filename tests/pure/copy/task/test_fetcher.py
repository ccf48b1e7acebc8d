"""How long a fetch waits at a broker, and what ends the wait."""

from __future__ import annotations

import math
import struct
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from sparkmirror.copy.event_loop import EventLoop
from sparkmirror.copy.task import fetch_wait as fetch_wait_module
from sparkmirror.copy.task import fetcher as fetcher_module
from sparkmirror.copy.task.cluster_connections import ClusterConnections
from sparkmirror.copy.task.fetcher import (
    IDLE_POLL_MS,
    LONG_POLL_MS,
    SHORT_POLL_MS,
    Fetcher,
    max_wait_ms,
)
from sparkmirror.copy.task.leased_partition import REACHABLE, LeasedPartition
from sparkmirror.copy.task.produce.partition_queue import PartitionQueue
from sparkmirror.copy.task.produce.sender import Sender
from sparkmirror.copy.task.reports import TaskReporter
from sparkmirror.copy.task.throttle import Throttle
from sparkmirror.copy.task.transform.transforming_converter import TransformingConverter
from sparkmirror.model import TopicPartition
from sparkmirror.wire.net.buffer_pool import MemoryBudget
from sparkmirror.wire.net.connection import ClientConfig
from tests.support.copy.pending_batches import make_lease, make_partition
from tests.support.copy.transform_chains import DROP_MARKED
from tests.support.copy.transformed_queues import converter_of
from tests.support.kafka.fake_broker import (
    FakeBroker,
    ReceivedRequest,
    Reply,
    api_versions_reply,
    leader_metadata,
    no_reply,
    response_reply,
)
from tests.support.kafka.log_brokers import LogBrokers, running_log_brokers
from tests.support.waiting import wait_until

FETCH, METADATA = 1, 3
MAX_WAIT = struct.Struct(">x4xi")
"""In a Fetch request: tagged fields, replica id, maximum wait."""


class WaitingBroker(FakeBroker):
    """Leads two partitions of `t` that get no records: it keeps every fetch waiting."""

    def __init__(self) -> None:
        super().__init__(iter(self._reply, None), sends_api_versions=False)

    def _reply(self) -> Reply:
        def reply(request: ReceivedRequest) -> bytes:
            if request.api_key == FETCH:
                return no_reply(request)
            if request.api_key == METADATA:
                return response_reply(self._metadata())(request)
            return api_versions_reply()(request)

        return reply

    def _metadata(self) -> Any:
        answer = leader_metadata(self)
        second = leader_metadata(self).topics[0].partitions[0]
        second.partition_index = 1
        answer.topics[0].partitions.append(second)
        return answer

    def max_waits(self) -> list[int]:
        """The maximum wait of each fetch so far."""
        fetches = [request for request in self.requests if request.api_key == FETCH]
        return [int(MAX_WAIT.unpack_from(request.body)[0]) for request in fetches]


class Reader:
    """A task that only reads."""

    position = 100

    def __init__(self, loop: EventLoop, broker: FakeBroker) -> None:
        client = ClientConfig(cluster="source")
        self.cluster = ClusterConnections(loop, client, [broker.address], MemoryBudget(1 << 26))
        self.cluster.add_topic("t")
        reporter = TaskReporter(1.0, lambda _: None, lambda _: REACHABLE)
        sender = Sender(self.cluster, reporter, 5, 15.0, 60.0)
        self.fetcher = Fetcher(self.cluster, sender, Throttle(), False, "", 10.0)
        self.cluster.on_change = self.fetcher.invalidate_brokers
        self.partitions: list[LeasedPartition] = []

    def grant(self, number: int) -> None:
        lease = replace(
            make_lease(self.position, partition=number), source=TopicPartition("t", number)
        )
        self.partitions.append(make_partition(PartitionQueue(lease)))
        self.fetcher.invalidate_brokers()

    def turn(self) -> None:
        now = time.monotonic()
        self.cluster.poll(now)
        self.fetcher.poll(self.partitions, now)
        self.cluster.loop.run_once(0.01)


class SlowReader(Reader):
    """Its converters pass records through a chain, and have no time left after one batch."""

    position = 0

    def grant(self, number: int) -> None:
        super().grant(number)
        converter = converter_of(DROP_MARKED)
        assert isinstance(converter, TransformingConverter)
        converter.monotonic = lambda: math.inf
        self.partitions[-1].converter = converter

    def positions(self) -> list[int]:
        return [partition.queue.next_fetch_offset for partition in self.partitions]


@pytest.fixture
def loop() -> Iterator[EventLoop]:
    made = EventLoop()
    yield made
    made.close()


def run_until_fetches(reader: Reader, broker: WaitingBroker, count: int) -> None:
    def has_fetches() -> bool:
        reader.turn()
        return len(broker.max_waits()) >= count and not reader.cluster.is_refreshing

    wait_until(has_fetches, "a fetch")


def test_a_partition_that_is_granted_during_a_long_wait_is_fetched_at_once(
    loop: EventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetcher_module, "QUIET_S", 0.0)
    with WaitingBroker() as broker:
        reader = Reader(loop, broker)
        reader.grant(0)
        run_until_fetches(reader, broker, 1)
        before = reader.cluster.connection(1)
        reader.fetcher.invalidate_brokers()
        reader.turn()
        assert reader.cluster.connection(1) is before, "it reads the same partitions"
        monkeypatch.setattr(fetcher_module, "QUIET_S", 10.0)
        reader.grant(1)
        run_until_fetches(reader, broker, 2)
        assert broker.max_waits() == [IDLE_POLL_MS, LONG_POLL_MS]
        assert [partition.fetch_backoff.reason for partition in reader.partitions] == ["", ""]
        assert not reader.cluster.is_unreachable(1)
        reader.cluster.close()


def test_a_partition_that_is_granted_during_a_short_wait_waits_for_the_answer(
    loop: EventLoop,
) -> None:
    with WaitingBroker() as broker:
        reader = Reader(loop, broker)
        reader.grant(0)
        run_until_fetches(reader, broker, 1)
        before = reader.cluster.connection(1)
        reader.grant(1)
        reader.turn()
        assert reader.cluster.connection(1) is before
        assert broker.max_waits() == [LONG_POLL_MS]
        reader.cluster.close()


def test_a_fetch_waits_no_longer_than_the_backoff_of_a_partition_that_it_leaves_out(
    loop: EventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetcher_module, "QUIET_S", 0.0)
    with WaitingBroker() as broker:
        reader = Reader(loop, broker)
        reader.grant(0)
        reader.grant(1)
        reader.partitions[1].fetch_backoff.start("source: down", time.monotonic() + 60)
        run_until_fetches(reader, broker, 1)
        assert broker.max_waits() == [LONG_POLL_MS]
        plan = reader.fetcher._plans[1]
        assert max_wait_ms(plan, plan.excluded_until - 0.2) in (200, 201)
        assert max_wait_ms(plan, plan.excluded_until) == SHORT_POLL_MS
        reader.cluster.close()


def test_what_is_not_converted_in_time_is_fetched_again(loop: EventLoop) -> None:
    with running_log_brokers(1, 2) as brokers:
        for number in (0, 1):
            for value in (b"a", b"b", b"c"):
                brokers.append(number, value, value)
        reader = SlowReader(loop, brokers.brokers[0])
        reader.grant(0)
        reader.grant(1)
        seen = [reader.positions()]

        def has_all() -> bool:
            reader.turn()
            if reader.positions() != seen[-1]:
                seen.append(reader.positions())
            return seen[-1] == [6, 6]

        wait_until(has_all, "both partitions")
        assert [sum(positions) for positions in seen] == [0, 2, 4, 6, 8, 10, 12], "batch by batch"
        assert len(brokers.requests_of(FETCH)) in (6, 7), "each fetch makes progress"
        for partition in reader.partitions:
            assert [batch.spans for batch in partition.queue.ready] == [
                ((0, 2),),
                ((2, 2),),
                ((4, 2),),
            ]
        reader.cluster.close()


def test_records_that_cannot_be_sent_do_not_stop_the_fetches_of_others(loop: EventLoop) -> None:
    with WaitingBroker() as broker:
        reader = Reader(loop, broker)
        reader.cluster.budget.reserve(reader.cluster.budget.limit // 2)
        reader.grant(0)

        def is_connected() -> bool:
            reader.turn()
            return reader.cluster.connection(1) is not None

        wait_until(is_connected, "a connection")
        reader.turn()
        assert broker.max_waits() == [], "the limit of responses in memory is reached"
        reader.fetcher.sender.blocked_bytes = reader.cluster.budget.used
        run_until_fetches(reader, broker, 1)
        reader.cluster.close()


def fetch_two_close_records(reader: Reader, brokers: LogBrokers) -> None:
    """Fetch two records, one after the other. By `COLLECT_S` they come closely."""
    for value in (b"a", b"b"):
        assert not reader.fetcher.lets_records_collect(time.monotonic())
        brokers.append(0, value)
        fetched = reader.partitions[0].queue.next_fetch_offset + 1

        def has_fetched(fetched: int = fetched) -> bool:
            reader.turn()
            return reader.partitions[0].queue.next_fetch_offset == fetched

        wait_until(has_fetched, f"record {value!r}")


def test_the_fetch_after_two_close_answers_waits_for_more_bytes(
    loop: EventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_wait_module, "COLLECT_S", 3600.0)
    monkeypatch.setattr(fetcher_module, "MAX_WAIT_MS", LONG_POLL_MS - 1)
    with running_log_brokers(1, 1) as brokers:
        reader = Reader(loop, brokers.brokers[0])
        reader.position = 0
        reader.grant(0)
        fetch_two_close_records(reader, brokers)
        fetches = len(brokers.fetch_min_bytes)
        assert set(brokers.fetch_min_bytes) == {1}
        assert reader.fetcher.next_fetch_at(time.monotonic()) == math.inf

        def has_fetched_again() -> bool:
            reader.turn()
            return len(brokers.fetch_min_bytes) > fetches

        wait_until(has_fetched_again, "the next fetch")
        assert reader.fetcher.lets_records_collect(time.monotonic())
        assert brokers.fetch_min_bytes[fetches] > 1
        assert brokers.fetch_waits_ms[fetches] == LONG_POLL_MS - 1
        reader.cluster.close()


def test_with_many_partitions_no_fetch_is_sent_during_the_pause_after_two_close_answers(
    loop: EventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_wait_module, "MAX_PARTITIONS_AT_BROKER", 0)
    for name in ("COLLECT_S", "PAUSE_S"):
        monkeypatch.setattr(fetch_wait_module, name, 3600.0)
    with running_log_brokers(1, 1) as brokers:
        reader = Reader(loop, brokers.brokers[0])
        reader.position = 0
        reader.grant(0)
        fetch_two_close_records(reader, brokers)
        fetches = len(brokers.requests_of(FETCH))
        now = time.monotonic()
        assert reader.fetcher.lets_records_collect(now)
        assert now < reader.fetcher.next_fetch_at(now) <= now + 3600
        reader.turn()
        assert len(brokers.requests_of(FETCH)) == fetches
        reader.cluster.close()


def test_a_lost_connection_ends_the_wait_for_more_records(
    loop: EventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_wait_module, "COLLECT_S", 3600.0)
    monkeypatch.setattr(fetcher_module, "MAX_WAIT_MS", LONG_POLL_MS)
    with running_log_brokers(1, 1) as brokers:
        reader = Reader(loop, brokers.brokers[0])
        reader.position = 0
        reader.grant(0)
        fetch_two_close_records(reader, brokers)
        reader.turn()
        assert reader.fetcher.lets_records_collect(time.monotonic())
        brokers.brokers[0].cut_connections()

    def has_lost_the_fetch() -> bool:
        reader.turn()
        return not reader.fetcher.lets_records_collect(time.monotonic())

    wait_until(has_lost_the_fetch, "a lost fetch")
    reader.cluster.close()

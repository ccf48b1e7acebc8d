"""Connections of a task to one cluster: what is wrong with a broker, and when it is well again."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from functools import partial
from itertools import repeat

import pytest

from sparkmirror.copy.event_loop import EventLoop
from sparkmirror.copy.task import cluster_connections
from sparkmirror.copy.task.cluster_connections import ClusterConnections
from sparkmirror.model import TopicPartition
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.buffer_pool import MemoryBudget
from sparkmirror.wire.net.connection import ClientConfig
from sparkmirror.wire.protocol import apis
from sparkmirror.wire.protocol.topics.current_leader import NO_NODE_ID
from sparkmirror.wire.protocol.topics.metadata_snapshot import metadata_request
from tests.support.kafka.fake_broker import (
    FakeBroker,
    ReceivedRequest,
    answering_broker,
    api_versions_reply,
    leader_metadata,
    response_reply,
)
from tests.support.reserved_port import reserved_port
from tests.support.waiting import wait_until

API_VERSIONS, METADATA = 18, 3
PARTITION = TopicPartition("t", 0)


class IdleTask:
    """Keeps the leader of one partition connected, and sends nothing."""

    def __init__(self, loop: EventLoop, bootstrap: Address) -> None:
        self.cluster = ClusterConnections(
            loop, ClientConfig(cluster="backup"), [bootstrap], MemoryBudget(0)
        )
        self.cluster.add_topic("t")
        self.errors: list[str] = []

    def has_error(self, text: str) -> bool:
        """Run one turn; return whether the error contains a text, empty: whether there is none."""
        self.cluster.poll(time.monotonic())
        self.cluster.connect_leaders([PARTITION])
        self.cluster.loop.run_once(0.01)
        self.errors.append(self.cluster.error_for(PARTITION))
        return text in self.errors[-1] if text else not self.errors[-1]

    def close(self) -> None:
        """Close the cluster when no metadata request is under way."""
        wait_until(self._is_settled, "the answer")
        self.cluster.close()

    def _is_settled(self) -> bool:
        self.has_error("")
        return not self.cluster.is_refreshing

    def is_connected(self) -> bool:
        """Run one turn; return whether the leader is connected."""
        return self.has_error("") and self.cluster.connection(1) is not None


@pytest.fixture
def loop() -> Iterator[EventLoop]:
    made = EventLoop()
    yield made
    made.close()


def led_broker(port: int = 0) -> FakeBroker:
    return answering_broker({METADATA: leader_metadata}, port=port)


def suspendable_broker(is_suspended: threading.Event) -> FakeBroker:
    """A broker that keeps its connections and answers nothing while it is suspended."""

    def reply(request: ReceivedRequest) -> bytes:
        if is_suspended.is_set():
            return b""
        if request.api_key == METADATA:
            return response_reply(leader_metadata(broker))(request)
        return api_versions_reply()(request)

    broker = FakeBroker(repeat(reply), sends_api_versions=False)
    return broker


def sends_nothing(task: IdleTask, broker: FakeBroker) -> bool:
    """Run many turns; return whether they sent no request."""
    before = len(broker.requests)
    for _ in range(50):
        task.has_error("")
    return len(broker.requests) == before


def test_an_idle_task_notices_that_the_leader_is_gone_and_that_it_is_back(loop: EventLoop) -> None:
    with reserved_port() as port:
        with led_broker(port) as broker:
            task = IdleTask(loop, broker.address)
            wait_until(task.is_connected, "the leader")
            wait_until(partial(sends_nothing, task, broker), "an idle task to send nothing")
        expected = f"backup: PLAINTEXT {broker.address}: connection refused"
        wait_until(partial(task.has_error, expected), "the error", 20)
        with led_broker(port):
            wait_until(task.is_connected, "the leader again", 20)
            task.close()


def test_a_broker_that_closes_an_idle_connection_is_no_error(loop: EventLoop) -> None:
    with led_broker() as broker:
        task = IdleTask(loop, broker.address)
        wait_until(task.is_connected, "the leader")
        task.errors.clear()
        opened = broker.connections
        broker.cut_connections()
        wait_until(
            lambda: task.is_connected() and broker.connections > opened, "another connection"
        )
        assert set(task.errors) == {""}
        task.close()


def test_a_broker_that_does_not_answer_in_time_is_an_error_until_it_does(
    loop: EventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_connections, "CONNECT_TIMEOUT_S", 0.5)
    monkeypatch.setattr(cluster_connections, "REOPEN_GRACE_S", 0.0)
    is_suspended = threading.Event()
    with suspendable_broker(is_suspended) as broker:
        task = IdleTask(loop, broker.address)
        wait_until(task.is_connected, "the leader")
        leader = task.cluster.connection(1)
        assert leader
        is_suspended.set()
        leader.send(
            apis.METADATA.build_request(metadata_request(["t"]), leader.api_versions),
            on_response=lambda _: None,
            deadline=time.monotonic() + 0.1,
        )
        expected = f"backup: PLAINTEXT {broker.address}: no answer to Metadata in time"
        wait_until(partial(task.has_error, expected), "the error", 20)
        is_suspended.clear()
        wait_until(task.is_connected, "the leader again", 20)
        task.close()


def test_a_partition_without_a_leader_says_so(loop: EventLoop) -> None:
    leaderless = {METADATA: partial(leader_metadata, leader=NO_NODE_ID)}
    with answering_broker(leaderless) as broker:
        task = IdleTask(loop, broker.address)
        wait_until(partial(task.has_error, "backup: t-0 has no leader; check"), "the error")
        task.close()


def test_partitions_are_looked_at_only_if_they_or_the_metadata_have_changed(
    loop: EventLoop,
) -> None:
    looks: list[TopicPartition] = []

    def partitions() -> Iterator[TopicPartition]:
        looks.append(PARTITION)
        yield PARTITION

    with led_broker() as broker:
        task = IdleTask(loop, broker.address)
        wait_until(task.is_connected, "the leader")
        wait_until(partial(sends_nothing, task, broker), "an idle task to send nothing")
        task.cluster.connect_leaders(partitions())
        assert looks == []
        task.cluster.invalidate_leaders()
        task.cluster.connect_leaders(partitions())
        task.cluster.connect_leaders(partitions())
        assert looks == [PARTITION]
        task.close()


def test_a_task_wakes_when_a_throttle_ends_within_its_turn(loop: EventLoop) -> None:
    with led_broker() as broker:
        task = IdleTask(loop, broker.address)
        wait_until(task.is_connected, "the leader")
        wait_until(partial(sends_nothing, task, broker), "an idle task to send nothing")
        connection = task.cluster.connection(1)
        assert connection is not None
        began = time.monotonic()
        connection.throttled_until = began + 0.001
        while time.monotonic() <= connection.throttled_until:
            task.cluster.connect_leaders([PARTITION])
        assert task.cluster.next_turn_at(began) == connection.throttled_until
        task.close()


def test_a_broker_that_is_not_in_the_metadata_is_unreachable_and_is_asked_for(
    loop: EventLoop,
) -> None:
    with led_broker() as broker:
        task = IdleTask(loop, broker.address)
        wait_until(task.is_connected, "the leader")
        wait_until(lambda: task.has_error("") and not task.cluster.is_refreshing, "the metadata")
        assert not task.cluster.is_unreachable(1)
        assert task.cluster.is_unreachable(3)
        wait_until(lambda: task.has_error("") and task.cluster.is_refreshing, "a request")
        task.close()


def test_a_lost_broker_is_a_change_and_wakes_the_task_for_the_next_attempt(
    loop: EventLoop,
) -> None:
    changes: list[str] = []
    with reserved_port() as port:
        with led_broker(port) as broker:
            task = IdleTask(loop, broker.address)
            wait_until(task.is_connected, "the leader")
            wait_until(partial(sends_nothing, task, broker), "an idle task to send nothing")
            task.cluster.on_change = lambda: changes.append("change")
            assert task.cluster.next_turn_at(time.monotonic()) == float("inf")
        wait_until(lambda: task.has_error("") and task.cluster.is_unreachable(1), "the loss", 20)
        assert changes == ["change"]
        assert task.cluster.next_turn_at(time.monotonic()) < time.monotonic() + 2
        wait_until(partial(task.has_error, "connection refused"), "the error", 20)
        assert changes == ["change"], "it is unreachable, as before"
        with led_broker(port):
            wait_until(task.is_connected, "the leader again", 20)
            task.close()


def test_a_connection_that_the_task_replaces_is_no_error(loop: EventLoop) -> None:
    with led_broker() as broker:
        task = IdleTask(loop, broker.address)
        wait_until(task.is_connected, "the leader")
        before = task.cluster.connection(1)
        task.errors.clear()
        task.cluster.reopen(1)
        assert not task.cluster.is_unreachable(1)
        wait_until(task.is_connected, "another connection")
        assert task.cluster.connection(1) is not before
        assert set(task.errors) == {""}
        task.close()


def test_an_unknown_partition_is_no_error_yet(loop: EventLoop) -> None:
    task = IdleTask(loop, Address("127.0.0.1", 1))
    assert task.cluster.error_for(PARTITION) == ""

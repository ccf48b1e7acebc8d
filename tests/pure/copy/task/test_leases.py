"""The leases of a task: granted, revoked, drained and returned."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sparkmirror.copy.control.messages import (
    AbortTask,
    ControlMessage,
    Drain,
    GrantLeases,
    LeaseEnded,
    LeaseEndReason,
    ProgressReport,
    RevokeLeases,
    SetRateLimit,
)
from sparkmirror.copy.event_loop import EventLoop
from sparkmirror.copy.settings import CopySettings, target_limits_to_json
from sparkmirror.copy.task.cluster_connections import ClusterConnections
from sparkmirror.copy.task.driver_messages import DriverMessageHandler, LeaseLost
from sparkmirror.copy.task.fetcher import Fetcher
from sparkmirror.copy.task.leased_partition import REACHABLE
from sparkmirror.copy.task.leases import TaskLeases
from sparkmirror.copy.task.produce.sender import Sender
from sparkmirror.copy.task.produce.transaction_manager import TransactionManager
from sparkmirror.copy.task.produce.transaction_state import Transaction
from sparkmirror.copy.task.receipts.epoch_receipts import EpochReceipts
from sparkmirror.copy.task.reports import TaskReporter
from sparkmirror.copy.task.throttle import Throttle
from sparkmirror.copy.task.transform.converter_factory import ConverterFactory
from sparkmirror.wire.batch.target_limits import TargetLimits
from sparkmirror.wire.net.buffer_pool import MemoryBudget
from sparkmirror.wire.net.connection import ClientConfig
from tests.support.copy.pending_batches import make_batch, make_lease

KEYS = ["orders-0", "orders-1"]
GRANT = GrantLeases(
    leases=[make_lease(partition=number) for number in (0, 1)],
    target_limits={"primary.orders": target_limits_to_json(TargetLimits())},
)


class TaskWithoutBrokers:
    """The parts of a task that handle leases; its clusters are never connected."""

    def __init__(self, loop: EventLoop) -> None:
        self.sent: list[ControlMessage] = []
        settings = CopySettings(drain_timeout_s=5.0)
        source = ClusterConnections(loop, ClientConfig(cluster="source"), [], MemoryBudget(0))
        target = ClusterConnections(loop, ClientConfig(cluster="target"), [], MemoryBudget(0))
        self.reporter = TaskReporter(1.0, self.sent.append, lambda _: REACHABLE)
        self.throttle = Throttle()
        sender = Sender(target, self.reporter, 5, 15.0, 60.0)
        self.leases = TaskLeases(
            settings=settings,
            source=source,
            target=target,
            fetcher=Fetcher(source, sender, self.throttle, True, "", 10.0),
            sender=sender,
            reporter=self.reporter,
            send=self.sent.append,
            new_transaction_manager=self._no_transactions,
            converters=ConverterFactory(),
        )
        self.handler = DriverMessageHandler(
            self.leases,
            self.reporter,
            self.throttle,
            EpochReceipts(self.reporter, self.leases.partitions),
        )

    def _no_transactions(self, _: Transaction) -> TransactionManager:
        raise AssertionError("the grant has no transactional producer")

    def ended(self) -> dict[str, LeaseEnded]:
        return {m.partition: m for m in self.sent if isinstance(m, LeaseEnded)}


@pytest.fixture
def task() -> Iterator[TaskWithoutBrokers]:
    loop = EventLoop()
    yield TaskWithoutBrokers(loop)
    loop.close()


def test_a_revoked_lease_is_returned_and_the_others_stay(task: TaskWithoutBrokers) -> None:
    task.handler.handle(GRANT)
    task.handler.handle(RevokeLeases(partitions=["orders-1", "unknown-0"]))
    task.leases.return_ended(now=0.0)
    assert [partition.key for partition in task.leases.partitions] == ["orders-0"]
    assert list(task.ended()) == ["orders-1"]
    assert task.ended()["orders-1"].reason is LeaseEndReason.CLOSED
    assert task.ended()["orders-1"].is_clean
    assert isinstance(task.sent[0], ProgressReport), "the driver has the last counts first"


def test_a_drained_task_returns_every_lease_and_those_granted_later(
    task: TaskWithoutBrokers,
) -> None:
    task.handler.handle(Drain())
    task.handler.handle(GRANT)
    assert not task.leases.is_drained
    task.leases.return_ended(now=0.0)
    assert sorted(task.ended()) == KEYS
    assert task.leases.is_drained


def test_a_batch_in_flight_delays_the_drain_until_its_deadline(task: TaskWithoutBrokers) -> None:
    task.leases.grant(GRANT)
    first = next(iter(task.leases.partitions))
    first.queue.enqueue(make_batch(100, 1))
    assert first.queue.next_to_send()
    task.leases.drain(now=0.0)
    task.leases.return_ended(now=4.0)
    assert sorted(task.ended()) == ["orders-1"]
    first.queue.on_request_done()
    task.leases.return_ended(now=5.1)
    end = task.ended()["orders-0"]
    assert (end.reason, end.is_clean) == (LeaseEndReason.AMBIGUOUS, False)
    assert end.position == 100, "the batch is not acknowledged"


def test_a_fenced_lease_is_not_clean(task: TaskWithoutBrokers) -> None:
    task.leases.grant(GRANT)
    next(iter(task.leases.partitions)).end_now(LeaseEndReason.FENCED, "another owner")
    task.leases.return_ended(now=0.0)
    assert not task.ended()["orders-0"].is_clean


def test_the_driver_sets_the_rate_limit(task: TaskWithoutBrokers) -> None:
    task.handler.handle(SetRateLimit(bytes_per_s=9))
    assert task.throttle.bytes_per_s == 9


def test_an_aborted_task_stops(task: TaskWithoutBrokers) -> None:
    with pytest.raises(LeaseLost, match="given up: silent for 10 s"):
        task.handler.handle(AbortTask(reason="silent for 10 s"))

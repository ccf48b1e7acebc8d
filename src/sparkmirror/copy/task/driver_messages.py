"""The driver's messages to a task: the welcome at the start, then commands.

GrantLeases, RevokeLeases, Drain   → leases
ReportAck                          → reporter: the lease is renewed
SetRateLimit                       → throttle
EndEpoch, EpochEndedAck            → receipts of the epoch
AbortTask                          → LeaseLost ends the task

A task that waits for the welcome answers `EndEpoch`, too: all tasks of a slot wait for each other
at the end of an epoch, and the conductor of one of them may be busy for long.
"""

from __future__ import annotations

import logging
import select
import time
from dataclasses import dataclass
from typing import NamedTuple

from sparkmirror.copy.control.connection import ControlConnection
from sparkmirror.copy.control.handshake import ControlProtocol
from sparkmirror.copy.control.messages import (
    AbortTask,
    ControlMessage,
    Drain,
    EndEpoch,
    EpochEnded,
    EpochEndedAck,
    GrantLeases,
    Hello,
    ReportAck,
    RevokeLeases,
    SetRateLimit,
    Welcome,
)
from sparkmirror.copy.settings import CopySettings
from sparkmirror.copy.task.leases import TaskLeases
from sparkmirror.copy.task.receipts.epoch_receipts import EpochReceipts, OnEpochEnded, ignore_end
from sparkmirror.copy.task.receipts.receipt_collector import ReceiptCollector
from sparkmirror.copy.task.reports import TaskReporter
from sparkmirror.copy.task.throttle import Throttle
from sparkmirror.errors import ClusterUnavailable

log = logging.getLogger(__name__)

WELCOME_TIMEOUT_S = 30.0


class LeaseLost(ClusterUnavailable):
    """The driver was silent for the length of a lease, or has given up this task."""


class DriverSession(NamedTuple):
    """A control connection after the welcome, and the messages that followed the welcome."""

    connection: ControlConnection
    settings: CopySettings
    messages: list[ControlMessage]


def connect_to_driver(
    address: tuple[str, int],
    protocol: ControlProtocol,
    secret: bytes,
    hello: Hello,
    on_epoch_ended: OnEpochEnded = ignore_end,
) -> DriverSession:
    """Connect, send the hello and wait for the welcome. Blocks.

    Calls `on_epoch_ended` without receipts for each epoch that ends before the welcome. Raises
    LeaseLost without a welcome in time, ControlConnectionLost without a connection.
    """
    received: list[ControlMessage] = []
    connection = ControlConnection.connect(address, protocol, secret, received.append)
    connection.send(hello)
    deadline = time.monotonic() + WELCOME_TIMEOUT_S
    while not received:
        if not select.select([connection], [], [], max(deadline - time.monotonic(), 0))[0]:
            raise LeaseLost("driver", f"sent no welcome within {WELCOME_TIMEOUT_S:.0f} s")
        connection.on_readable()
        _answer_ends_of_epochs(received, connection, on_epoch_ended)
    welcome, *following = received
    if not isinstance(welcome, Welcome):
        raise LeaseLost("driver", f"sent {type(welcome).__name__} instead of a welcome")
    return DriverSession(connection, CopySettings.from_json(welcome.settings), following)


def _answer_ends_of_epochs(
    received: list[ControlMessage], connection: ControlConnection, on_epoch_ended: OnEpochEnded
) -> None:
    """End the epochs that end before the welcome: until then the task has no lease and no receipt.

    Removes the messages about them from those that were received.
    """
    while received and isinstance(message := received[0], EndEpoch | EpochEndedAck):
        del received[0]
        if isinstance(message, EndEpoch):
            connection.send(EpochEnded(epoch=message.epoch))
            on_epoch_ended(message.epoch, ReceiptCollector())


@dataclass(frozen=True, slots=True)
class DriverMessageHandler:
    """Carries out the driver's commands."""

    leases: TaskLeases
    reporter: TaskReporter
    throttle: Throttle
    epoch_receipts: EpochReceipts

    def handle(self, message: ControlMessage) -> None:
        """Carry out one message. Raises LeaseLost if the driver has given up the task."""
        match message:
            case ReportAck():
                self.reporter.on_report_ack()
            case AbortTask():
                raise LeaseLost("driver", f"this task was given up: {message.reason}")
            case GrantLeases():
                self.leases.grant(message)
            case RevokeLeases():
                self.leases.revoke(message.partitions)
            case SetRateLimit():
                self.throttle.bytes_per_s = message.bytes_per_s
            case Drain():
                self.leases.drain(time.monotonic())
            case EndEpoch():
                self.epoch_receipts.end_epoch(message.epoch)
            case EpochEndedAck():
                self.epoch_receipts.on_ack(message.epoch)
            case _:
                log.warning("Ignored unexpected message from driver: %s", type(message).__name__)

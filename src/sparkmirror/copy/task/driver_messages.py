"""The driver's messages to a task: the welcome at the start, then commands.

GrantLeases, RevokeLeases, Drain   → leases
ReportAck                          → reporter: the lease is renewed
SetRateLimit                       → throttle
EndEpoch, EpochEndedAck            → receipts of the epoch
AbortTask                          → LeaseLost ends the task
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
from sparkmirror.copy.task.receipts.epoch_receipts import EpochReceipts
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
    address: tuple[str, int], protocol: ControlProtocol, secret: bytes, hello: Hello
) -> DriverSession:
    """Connect, send the hello and wait for the welcome. Blocks.

    Raises LeaseLost without a welcome in time, ControlConnectionLost without a connection.
    """
    received: list[ControlMessage] = []
    connection = ControlConnection.connect(address, protocol, secret, received.append)
    connection.send(hello)
    deadline = time.monotonic() + WELCOME_TIMEOUT_S
    while not (others := _without_ends_of_epochs(received)):
        if not select.select([connection], [], [], max(deadline - time.monotonic(), 0))[0]:
            raise LeaseLost("driver", f"sent no welcome within {WELCOME_TIMEOUT_S:.0f} s")
        connection.on_readable()
    welcome = others[0]
    if not isinstance(welcome, Welcome):
        raise LeaseLost("driver", f"sent {type(welcome).__name__} instead of a welcome")
    following = [message for message in received if message is not welcome]
    return DriverSession(connection, CopySettings.from_json(welcome.settings), following)


def _without_ends_of_epochs(messages: list[ControlMessage]) -> list[ControlMessage]:
    """Return the other messages: the epoch may end before the conductor welcomes the task."""
    return [message for message in messages if not isinstance(message, EndEpoch)]


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
                self.epoch_receipts.on_ack()
            case _:
                log.warning("Ignored unexpected message from driver: %s", type(message).__name__)

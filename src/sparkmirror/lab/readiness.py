"""When a broker is really there: it lets us in, and it knows the others.

An open port says little. A broker is ready on a listener when it answers a metadata request
there, through TLS and login if need be, as a member of the right cluster, and counts itself (or
everybody) among the brokers that are alive, which takes an elected controller. Every wait has an
end, and a broker that dies meanwhile ends it at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sparkmirror.cluster.access import Access
from sparkmirror.cluster.probe import Glimpse, probe
from sparkmirror.errors import ClusterError, LabError, NotAuthorized
from sparkmirror.lab.broker import Broker
from sparkmirror.lab.clients import Clients
from sparkmirror.lab.layout import Node

START_S = 120.0
_ANSWER_S = 5.0
_PAUSE_S = 0.05


class PortLost(LabError):
    """Somebody else was quicker to use a port; another one must be claimed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """One listener of one broker, and how to get in there."""

    node: Node
    listener: str
    broker: Broker
    access: Access

    def __str__(self) -> str:
        return f"{self.broker.name} on {self.listener} ({self.node.address(self.listener)})"


def doors(node: Node, broker: Broker, clients: Clients) -> list[Door]:
    """List the listeners of a broker, each with a way in that needs no stored user."""
    return [
        Door(
            node=node,
            listener=name,
            broker=broker,
            access=clients.access(name, mechanism="PLAIN"),
        )
        for name in node.broker_listeners
    ]


def wait_for(
    wanted: Sequence[Door],
    expected: Glimpse,
    tell: Callable[[str], None],
    timeout_s: float = START_S,
) -> None:
    """Wait until each door is open, and who is behind it knows what is expected of the cluster.

    Of `expected` count the cluster's id and the brokers that must be alive, at least.
    """
    deadline = time.monotonic() + timeout_s
    for door in wanted:
        tell(f"waiting for {door}")
        while (reason := _reason_to_wait(door, expected)) is not None:
            for other in wanted:
                _require_life(other)
            if time.monotonic() > deadline:
                raise door.broker.failure(
                    f"does not serve {door.listener} after {timeout_s:.0f} s: {reason}"
                )
            time.sleep(_PAUSE_S)


def wait_for_login(door: Door, access: Access, timeout_s: float = START_S) -> None:
    """Wait until a broker has heard of a user who was just made."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            probe(access, door.node.address(door.listener), _ANSWER_S)
        except ClusterError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_S)
        else:
            return


def _reason_to_wait(door: Door, expected: Glimpse) -> str | None:
    """Say why a door is not open yet; None if it is. Raises if it never will be."""
    try:
        seen = probe(door.access, door.node.address(door.listener), _ANSWER_S)
    except NotAuthorized as error:
        raise door.broker.failure(f"refuses the lab: {error}") from error
    except ClusterError as error:
        return str(error)
    if seen.cluster_id != expected.cluster_id:
        return f"cluster {seen.cluster_id} answers there"
    missing = sorted(expected.brokers - seen.brokers)
    return f"it does not know of broker {missing} yet" if missing else None


def _require_life(door: Door) -> None:
    if door.broker.runs():
        return
    if door.broker.lost_its_port():
        raise PortLost(f"{door} lost its port to somebody else.")
    raise door.broker.failure("ended while it should have started")

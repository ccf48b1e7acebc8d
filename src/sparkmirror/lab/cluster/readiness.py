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

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.probe import ProbeResult, probe
from sparkmirror.errors import ClusterError, LabError, NotAuthorized
from sparkmirror.lab.cluster.broker_process import BrokerProcess
from sparkmirror.lab.cluster.client_settings import ClientSettings
from sparkmirror.lab.cluster.node_listeners import LabNode

START_TIMEOUT_S = 120.0
_PROBE_TIMEOUT_S = 5.0
_POLL_INTERVAL_S = 0.05


class PortInUse(LabError):
    """Somebody else was quicker to use a port; another one must be claimed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerEndpoint:
    """One listener of one broker, and how to get in there."""

    node: LabNode
    listener: str
    broker: BrokerProcess
    access: ClusterAccess

    def __str__(self) -> str:
        return f"{self.broker.name} on {self.listener} ({self.node.address(self.listener)})"


def listener_endpoints(
    node: LabNode, broker: BrokerProcess, clients: ClientSettings
) -> list[ListenerEndpoint]:
    """List the listeners of a broker, each with a way in that needs no stored user."""
    return [
        ListenerEndpoint(
            node=node,
            listener=name,
            broker=broker,
            access=clients.access(name, mechanism="PLAIN"),
        )
        for name in node.broker_listeners
    ]


def wait_until_ready(
    wanted: Sequence[ListenerEndpoint],
    expected: ProbeResult,
    tell: Callable[[str], None],
    timeout_s: float = START_TIMEOUT_S,
) -> None:
    """Wait until each door is open, and who is behind it knows what is expected of the cluster.

    Of `expected` count the cluster's id and the brokers that must be alive, at least.
    """
    deadline = time.monotonic() + timeout_s
    for door in wanted:
        tell(f"waiting for {door}")
        while (reason := _not_ready_reason(door, expected)) is not None:
            for other in wanted:
                _check_running(other)
            if time.monotonic() > deadline:
                raise door.broker.failure(
                    f"does not serve {door.listener} after {timeout_s:.0f} s: {reason}"
                )
            time.sleep(_POLL_INTERVAL_S)


def wait_for_login(
    door: ListenerEndpoint, access: ClusterAccess, timeout_s: float = START_TIMEOUT_S
) -> None:
    """Wait until a broker has heard of a user who was just made."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            probe(access, door.node.address(door.listener), _PROBE_TIMEOUT_S)
        except ClusterError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_POLL_INTERVAL_S)
        else:
            return


def _not_ready_reason(door: ListenerEndpoint, expected: ProbeResult) -> str | None:
    """Say why a door is not open yet; None if it is. Raises if it never will be."""
    try:
        seen = probe(door.access, door.node.address(door.listener), _PROBE_TIMEOUT_S)
    except NotAuthorized as error:
        raise door.broker.failure(f"refuses the lab: {error}") from error
    except ClusterError as error:
        return str(error)
    if seen.cluster_id != expected.cluster_id:
        return f"cluster {seen.cluster_id} answers there"
    missing = sorted(expected.brokers - seen.brokers)
    return f"it does not know of broker {missing} yet" if missing else None


def _check_running(door: ListenerEndpoint) -> None:
    if door.broker.is_running():
        return
    if door.broker.failed_to_bind():
        raise PortInUse(f"{door} lost its port to somebody else.")
    raise door.broker.failure("ended while it should have started")

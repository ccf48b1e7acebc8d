"""Waits until brokers are ready.

A broker is ready on a listener when it answers a metadata request there, through TLS and login if
the listener has them, with the right cluster id, and lists the expected brokers as alive, which
needs an elected controller. Every wait has a timeout, and ends at once if the broker dies.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.probe import ProbeResult, probe
from sparkmirror.errors import ClusterError, NotAuthorized
from sparkmirror.lab.cluster.broker_process import BrokerProcess
from sparkmirror.lab.cluster.client_settings import ClientSettings
from sparkmirror.lab.cluster.cluster_spec import ListenerProtocol
from sparkmirror.lab.cluster.node_listeners import LabNode
from sparkmirror.lab.processes.port_registry import PortInUse

START_TIMEOUT_S = 120.0
_PROBE_TIMEOUT_S = 5.0
_POLL_INTERVAL_S = 0.05
_FAULTY_LISTENERS = {
    listener.value for listener in ListenerProtocol if listener.has_faulty_certificate
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerEndpoint:
    """One listener of one broker, with the access that logs in there."""

    node: LabNode
    listener: str
    broker: BrokerProcess
    access: ClusterAccess

    def __str__(self) -> str:
        return f"{self.broker.name} on {self.listener} ({self.node.address(self.listener)})"


def listener_endpoints(
    node: LabNode, broker: BrokerProcess, clients: ClientSettings
) -> list[ListenerEndpoint]:
    """Return the listeners of a broker, each with a login that needs no stored user.

    Listeners with a faulty certificate are left out: the lab's own clients refuse them.
    """
    return [
        ListenerEndpoint(
            node=node,
            listener=name,
            broker=broker,
            access=clients.access(name, mechanism="PLAIN"),
        )
        for name in node.broker_listeners
        if name not in _FAULTY_LISTENERS
    ]


def wait_until_ready(
    endpoints: Sequence[ListenerEndpoint],
    expected: ProbeResult,
    progress: Callable[[str], None],
    timeout_s: float = START_TIMEOUT_S,
) -> None:
    """Wait until each listener answers with the expected cluster id and brokers.

    Blocks. Raises PortInUse, or BrokerFailed if a broker dies or the time is over.
    """
    deadline = time.monotonic() + timeout_s
    for endpoint in endpoints:
        progress(f"waiting for {endpoint}")
        while (reason := _not_ready_reason(endpoint, expected)) is not None:
            for other in endpoints:
                _check_running(other)
            if time.monotonic() > deadline:
                raise endpoint.broker.failure(
                    f"does not serve {endpoint.listener} after {timeout_s:.0f} s: {reason}"
                )
            time.sleep(_POLL_INTERVAL_S)


def wait_for_login(
    endpoint: ListenerEndpoint, access: ClusterAccess, timeout_s: float = START_TIMEOUT_S
) -> None:
    """Wait until a broker accepts the login of a new user.

    Blocks. Raises the last ClusterError if the time is over.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            probe(access, endpoint.node.address(endpoint.listener), _PROBE_TIMEOUT_S)
        except ClusterError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_POLL_INTERVAL_S)
        else:
            return


def _not_ready_reason(endpoint: ListenerEndpoint, expected: ProbeResult) -> str | None:
    """Return why a listener is not ready; None if it is. Raises BrokerFailed for a failed login."""
    try:
        found = probe(endpoint.access, endpoint.node.address(endpoint.listener), _PROBE_TIMEOUT_S)
    except NotAuthorized as error:
        raise endpoint.broker.failure(f"refuses the lab: {error}") from error
    except ClusterError as error:
        return str(error)
    if found.cluster_id != expected.cluster_id:
        return f"cluster {found.cluster_id} answers there"
    missing = sorted(expected.brokers - found.brokers)
    return f"it does not know of broker {missing} yet" if missing else None


def _check_running(endpoint: ListenerEndpoint) -> None:
    if endpoint.broker.is_running():
        return
    if endpoint.broker.failed_to_bind():
        raise PortInUse(f"{endpoint} lost its port to another program.")
    raise endpoint.broker.failure("ended while it should have started")

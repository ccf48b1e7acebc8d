"""Which node listens where: names, protocols and ports of every listener of a cluster.

Besides the listeners clients use there are two more. CONTROLLER is where the quorum talks.
CONTROL, on clusters that need it, is where brokers talk to each other and the lab does its own
errands as a super user; so no listener for clients ever needs an all-powerful anonymous user.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sparkmirror.lab.cluster.cluster_spec import ClusterSpec
from sparkmirror.lab.processes.port_registry import HOST
from sparkmirror.wire.net.address import Address

CONTROL_LISTENER = "CONTROL"
CONTROLLER_LISTENER = "CONTROLLER"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabNode:
    """One process of a cluster: always a broker, maybe a controller too."""

    node_id: int
    ports: Mapping[str, int]

    @property
    def is_controller(self) -> bool:
        """Tell whether it has a vote in the quorum."""
        return CONTROLLER_LISTENER in self.ports

    def address(self, listener: str) -> Address:
        """Where a listener of this node is."""
        return Address(HOST, self.ports[listener])

    @property
    def broker_listeners(self) -> tuple[str, ...]:
        """The listeners of its broker."""
        return tuple(name for name in self.ports if name != CONTROLLER_LISTENER)


def inter_broker_listener(spec: ClusterSpec) -> str:
    """Name the listener on which brokers, and the lab, talk."""
    return CONTROL_LISTENER if spec.has_control_listener else spec.listeners[0]


def broker_listeners(spec: ClusterSpec) -> tuple[str, ...]:
    """Name the listeners of every broker."""
    own = (CONTROL_LISTENER,) if spec.has_control_listener else ()
    return (*(listener.value for listener in spec.listeners), *own)


def security_protocols(spec: ClusterSpec) -> dict[str, str]:
    """Say which protocol each listener speaks."""
    inner = "SASL_PLAINTEXT" if spec.has_control_listener else "PLAINTEXT"
    protocols = {listener.value: listener.value for listener in spec.listeners}
    if spec.has_control_listener:
        protocols[CONTROL_LISTENER] = inner
    return {**protocols, CONTROLLER_LISTENER: inner}


def allocate_nodes(spec: ClusterSpec, claim: Callable[[int], list[int]]) -> tuple[LabNode, ...]:
    """Give every listener of every node a port. Nodes are numbered from 1."""
    names = broker_listeners(spec)
    ports = iter(claim(len(names) * spec.brokers + spec.controllers))
    nodes = []
    for node_id in range(1, spec.brokers + 1):
        own = (*names, CONTROLLER_LISTENER) if node_id <= spec.controllers else names
        nodes.append(LabNode(node_id=node_id, ports={name: next(ports) for name in own}))
    return tuple(nodes)

"""The names, security protocols and ports of every listener of a cluster.

Besides the listeners for clients there are two more. The KRaft controllers use CONTROLLER. The
brokers and the lab use CONTROL, on clusters that need it, as a super user. So no listener for
clients needs an anonymous user with all rights.
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
        """Whether it is a voter of the KRaft controllers' quorum."""
        return CONTROLLER_LISTENER in self.ports

    def address(self, listener: str) -> Address:
        """Return the address of a listener of this node."""
        return Address(HOST, self.ports[listener])

    @property
    def broker_listeners(self) -> tuple[str, ...]:
        """The listeners of its broker."""
        return tuple(name for name in self.ports if name != CONTROLLER_LISTENER)


def inter_broker_listener(spec: ClusterSpec) -> str:
    """Return the name of the listener that brokers and the lab use."""
    return CONTROL_LISTENER if spec.has_control_listener else spec.listeners[0]


def broker_listeners(spec: ClusterSpec) -> tuple[str, ...]:
    """Return the names of the listeners that every broker has."""
    control = (CONTROL_LISTENER,) if spec.has_control_listener else ()
    return (*(listener.value for listener in spec.listeners), *spec.proxied_listeners, *control)


def security_protocols(spec: ClusterSpec) -> dict[str, str]:
    """Return the security protocol of each listener."""
    internal = "SASL_PLAINTEXT" if spec.has_control_listener else "PLAINTEXT"
    protocols = {listener.value: listener.security_protocol for listener in spec.listeners}
    protocols |= dict.fromkeys(spec.proxied_listeners, "PLAINTEXT")
    if spec.has_control_listener:
        protocols[CONTROL_LISTENER] = internal
    if not spec.has_zookeeper:
        protocols[CONTROLLER_LISTENER] = internal
    return protocols


def allocate_nodes(spec: ClusterSpec, claim: Callable[[int], list[int]]) -> tuple[LabNode, ...]:
    """Return the nodes, with a claimed port for each listener. The first node id is 1."""
    names = broker_listeners(spec)
    ports = iter(claim(len(names) * spec.brokers + spec.controllers))
    nodes = []
    for node_id in range(1, spec.brokers + 1):
        listeners = (*names, CONTROLLER_LISTENER) if node_id <= spec.controllers else names
        nodes.append(LabNode(node_id=node_id, ports={name: next(ports) for name in listeners}))
    return tuple(nodes)

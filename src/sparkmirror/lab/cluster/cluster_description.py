"""The description of a started cluster, with which another process finds it again.

It holds passwords: only the owner of the lab may read files with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from sparkmirror.lab.cluster.cluster_spec import ClusterSpec
from sparkmirror.lab.cluster.node_listeners import LabNode
from sparkmirror.lab.processes.port_registry import HOST
from sparkmirror.wire.net.address import Address


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDescription:
    """The specification of a cluster, with its directory, id, ports and password."""

    spec: ClusterSpec
    directory: Path
    cluster_id: str
    nodes: tuple[LabNode, ...]
    control_password: str = field(repr=False)
    zookeeper_port: int | None = None

    @property
    def tls_directory(self) -> Path:
        """The directory of its certificates; exists only if a listener uses TLS."""
        return self.directory / "tls"

    @property
    def zookeeper(self) -> Address | None:
        """The address of its ZooKeeper; None if it has none."""
        return None if self.zookeeper_port is None else Address(HOST, self.zookeeper_port)

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return {
            "spec": self.spec.to_json(),
            "directory": str(self.directory),
            "cluster_id": self.cluster_id,
            "nodes": [{"id": node.node_id, "ports": dict(node.ports)} for node in self.nodes],
            "control_password": self.control_password,
            "zookeeper_port": self.zookeeper_port,
        }

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Self:
        """Return the description of an object from `to_json`."""
        return cls(
            spec=ClusterSpec.from_json(plain["spec"]),
            directory=Path(plain["directory"]),
            cluster_id=plain["cluster_id"],
            nodes=tuple(
                LabNode(node_id=node["id"], ports=node["ports"]) for node in plain["nodes"]
            ),
            control_password=plain["control_password"],
            zookeeper_port=plain.get("zookeeper_port"),
        )

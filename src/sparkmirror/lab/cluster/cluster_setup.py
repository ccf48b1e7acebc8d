"""Prepares a cluster before its first start: directory, ports, certificates, description."""

from __future__ import annotations

import secrets
from dataclasses import replace
from functools import partial
from pathlib import Path

from sparkmirror.errors import AlreadyExists
from sparkmirror.lab.cluster.certificates import CertificateAuthority
from sparkmirror.lab.cluster.cluster_description import ClusterDescription
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec
from sparkmirror.lab.cluster.node_listeners import allocate_nodes
from sparkmirror.lab.cluster.server_properties import BROKER_CERTIFICATE, FAULTY_CERTIFICATES
from sparkmirror.lab.cluster.storage import random_uuid
from sparkmirror.lab.processes.port_registry import PortRegistry


def create_cluster_directory(directory: Path) -> Path:
    """Create the directory of a new cluster. Raises AlreadyExists."""
    directory = directory.absolute()
    if directory.exists():
        raise AlreadyExists(f"{directory} exists already: name a directory that does not.")
    directory.mkdir(parents=True, mode=0o700)
    return directory


def prepare_cluster(spec: ClusterSpec, directory: Path, ports: PortRegistry) -> ClusterDescription:
    """Claim ports and issue certificates for a new cluster; return its description."""
    description = ClusterDescription(
        spec=spec,
        directory=directory,
        cluster_id=random_uuid(),
        nodes=allocate_nodes(spec, partial(ports.claim, owner=directory)),
        control_password=secrets.token_urlsafe(16),
        zookeeper_port=_claim_zookeeper_port(spec, directory, ports),
    )
    if any(listener.uses_tls for listener in spec.listeners):
        authority = CertificateAuthority.create(description.tls_directory)
        for name in (BROKER_CERTIFICATE, *spec.users):
            authority.issue(name)
        for listener in spec.listeners:
            if listener.has_faulty_certificate:
                authority.issue(*FAULTY_CERTIFICATES[listener])
    return description


def reassign_ports(description: ClusterDescription, ports: PortRegistry) -> ClusterDescription:
    """Claim other ports and return the description with them."""
    spec, owner = description.spec, description.directory
    return replace(
        description,
        nodes=allocate_nodes(spec, partial(ports.claim, owner=owner)),
        zookeeper_port=_claim_zookeeper_port(spec, owner, ports),
    )


def _claim_zookeeper_port(spec: ClusterSpec, owner: Path, ports: PortRegistry) -> int | None:
    return ports.claim(1, owner)[0] if spec.has_zookeeper else None

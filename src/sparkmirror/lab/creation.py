"""Before the first process: a directory, ports, certificates, and the description of it all."""

from __future__ import annotations

import secrets
from dataclasses import replace
from functools import partial
from pathlib import Path

from sparkmirror.errors import AlreadyExists
from sparkmirror.lab.certificates import Authority
from sparkmirror.lab.description import Description
from sparkmirror.lab.layout import lay_out
from sparkmirror.lab.ports import Ports
from sparkmirror.lab.server import BROKER_CERTIFICATE
from sparkmirror.lab.spec import ClusterSpec
from sparkmirror.lab.storage import new_id


def make_directory(directory: Path) -> Path:
    """Make the directory of a new cluster; it must be one nobody has used."""
    directory = directory.absolute()
    if directory.exists():
        raise AlreadyExists(f"{directory} exists already: name a directory that does not.")
    directory.mkdir(parents=True, mode=0o700)
    return directory


def describe_new(spec: ClusterSpec, directory: Path, ports: Ports) -> Description:
    """Claim ports and issue certificates for a cluster that is about to begin."""
    described = Description(
        spec=spec,
        directory=directory,
        cluster_id=new_id(),
        nodes=lay_out(spec, partial(ports.claim, owner=directory)),
        control_password=secrets.token_urlsafe(16),
    )
    if any(listener.has_tls for listener in spec.listeners):
        authority = Authority.create(described.tls_directory)
        for name in (BROKER_CERTIFICATE, *spec.users):
            authority.issue(name)
    return described


def with_other_ports(described: Description, ports: Ports) -> Description:
    """Describe the same cluster elsewhere, because a stranger has taken one of its ports."""
    claim = partial(ports.claim, owner=described.directory)
    return replace(described, nodes=lay_out(described.spec, claim))

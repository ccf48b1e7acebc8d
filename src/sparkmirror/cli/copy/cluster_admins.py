"""The admin clients of both clusters of a copy, and what planning needs to know of the clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sparkmirror.cli.copy.plan import ClusterDescriptions
from sparkmirror.cli.copy.request import CopyRequest
from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.probe import wait_for_cluster
from sparkmirror.errors import (
    ClusterTimeout,
    ClusterUnavailable,
)

CONNECT_TIMEOUT_S = 5.0
NOTICE_AFTER_S = 1.0
"""After this long the operator gets a line that a cluster does not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAdmins:
    """One admin client per cluster."""

    source: Admin
    target: Admin


@contextmanager
def connect(request: CopyRequest, notify: Callable[[str], None]) -> Iterator[ClusterAdmins]:
    """Connect to both clusters. Raises ClusterError after CONNECT_TIMEOUT_S; warns before."""
    source = request.source.access(request.flow.source)
    target = request.target.access(request.flow.target)
    for access in (source, target):
        _await_cluster(access, notify)
    with Admin(source) as source_admin, Admin(target) as target_admin:
        yield ClusterAdmins(source=source_admin, target=target_admin)


def _await_cluster(access: ClusterAccess, notify: Callable[[str], None]) -> None:
    try:
        wait_for_cluster(access, NOTICE_AFTER_S)
    except (ClusterUnavailable, ClusterTimeout) as error:
        notify(f"Waiting for cluster {error}")
        wait_for_cluster(access, CONNECT_TIMEOUT_S - NOTICE_AFTER_S)


def describe_clusters(admins: ClusterAdmins) -> ClusterDescriptions:
    """Return brokers and topics of both clusters."""
    return ClusterDescriptions(
        source=admins.source.describe_cluster(),
        target=admins.target.describe_cluster(),
        source_topics=admins.source.describe_topics(),
        target_topics=admins.target.describe_topics(),
    )

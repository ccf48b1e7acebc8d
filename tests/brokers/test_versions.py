"""Kafka versions besides the default: each starts, and keeps what it is told."""

from __future__ import annotations

import pytest

from sparkmirror.lab.jars import DEFAULT_VERSION, TRIED_VERSIONS
from sparkmirror.lab.spec import ClusterSpec, Listener
from tests.support.clusters import StartCluster, create_topic, read_values, write_values

FETCHING_S = 900
"""The first time on a computer, the jars of another version are fetched before it can start."""


@pytest.mark.timeout(FETCHING_S)
@pytest.mark.parametrize("version", [v for v in TRIED_VERSIONS if v != DEFAULT_VERSION])
def test_a_cluster_of_another_version_serves_and_restarts(
    start_cluster: StartCluster, topic: str, version: str
) -> None:
    cluster = start_cluster(
        ClusterSpec(
            name=f"kafka-{version}",
            version=version,
            fast_start=True,
            listeners=(Listener.PLAINTEXT, Listener.SASL_SSL),
            authorizer=True,
            users={"alice": "alice-secret"},
            super_users=("alice",),
        )
    )
    access = cluster.access(Listener.SASL_SSL, "alice")
    create_topic(access, topic)
    write_values(access, topic, b"kept")
    cluster.restart_broker(1)
    assert read_values(access, topic) == [b"kept"]

"""Kafka versions besides the default: each starts, and keeps what it is told."""

from __future__ import annotations

import pytest

from sparkmirror.lab.cluster.cluster_spec import ClusterSpec, ListenerProtocol
from sparkmirror.lab.kafka.jar_cache import DEFAULT_VERSION, TESTED_VERSIONS
from tests.support.kafka.clusters import StartCluster, create_topic, read_values, write_values

FETCHING_S = 900
"""The first time on a computer, the jars of another version are fetched before it can start."""


@pytest.mark.timeout(FETCHING_S)
@pytest.mark.parametrize("version", [v for v in TESTED_VERSIONS if v != DEFAULT_VERSION])
def test_a_cluster_of_another_version_serves_and_restarts(
    start_cluster: StartCluster, topic: str, version: str
) -> None:
    cluster = start_cluster(
        ClusterSpec(
            name=f"kafka-{version}",
            version=version,
            fast_start=True,
            listeners=(ListenerProtocol.PLAINTEXT, ListenerProtocol.SASL_SSL),
            authorizer=True,
            users={"alice": "alice-secret"},
            super_users=("alice",),
        )
    )
    access = cluster.access(ListenerProtocol.SASL_SSL, "alice")
    create_topic(access, topic)
    write_values(access, topic, b"kept")
    cluster.restart_broker(1)
    assert read_values(access, topic) == [b"kept"]

"""Clusters of all tested Kafka versions but the default."""

from __future__ import annotations

import pytest

from sparkmirror.lab.cluster.cluster_spec import ClusterSpec, ListenerProtocol
from sparkmirror.lab.kafka.jar_cache import DEFAULT_VERSION, TESTED_VERSIONS
from tests.support.kafka.clusters import StartCluster, create_topic, read_values, write_values

FETCHING_S = 900
"""The first run on a computer fetches the jars of the version."""


@pytest.mark.timeout(FETCHING_S)
@pytest.mark.parametrize("version", [v for v in TESTED_VERSIONS if v != DEFAULT_VERSION])
def test_cluster_of_another_version_keeps_records_after_a_restart(
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

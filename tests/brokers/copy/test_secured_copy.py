"""Logins that end and secrets that change while records are copied: every record arrives once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from sparkmirror.cluster.admin import Admin
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec, ListenerProtocol
from tests.brokers.copy.conftest import PROPERTIES
from tests.support.copy.copy_flow import CopyFlow
from tests.support.copy.copy_harness import CopyHarness
from tests.support.copy.fault_scenario import SLOW_COPY, create_mixed_topic, has_copied_records
from tests.support.kafka.batch_writer import BatchWriter
from tests.support.kafka.clusters import StartCluster, UniqueName

SESSION_MS = 5000
MIRROR, PASSWORD, NEXT_PASSWORD = "mirror", "first password", "second password"
FILE_PROVIDER = {
    "config.providers": "file",
    "config.providers.file.class": ("org.apache.kafka.common.config.provider.FileConfigProvider"),
}


@pytest.fixture(scope="module")
def secured(start_module_cluster: StartCluster) -> Cluster:
    """One broker with short sessions and certificates of clients."""
    return start_module_cluster(
        ClusterSpec(
            name="secured-copy",
            fast_start=True,
            listeners=(ListenerProtocol.SASL_SSL, ListenerProtocol.SSL),
            mutual_tls=True,
            users={"root": "roots password", MIRROR: PASSWORD},
            properties={
                **PROPERTIES,
                "listener.name.sasl_ssl.connections.max.reauth.ms": str(SESSION_MS),
            },
        )
    )


@pytest.fixture
def flow(secured: Cluster, unique_name: UniqueName) -> CopyFlow:
    """A flow from the cluster to itself; the test itself connects as root, with a certificate."""
    access = secured.access(ListenerProtocol.SSL, "root")
    return CopyFlow(
        name=unique_name("flow"),
        source=access,
        target=access,
        source_properties=secured.client_properties(
            ListenerProtocol.SASL_SSL, MIRROR, "SCRAM-SHA-256"
        ),
        target_properties=secured.client_properties(ListenerProtocol.SSL, MIRROR),
    )


@pytest.fixture
def writer(flow: CopyFlow) -> Iterator[BatchWriter]:
    made = BatchWriter(flow.source)
    yield made
    made.close()


def copy_for_two_sessions(harness: CopyHarness) -> None:
    """Wait until every session of now has ended, and records are copied afterwards."""
    ends_at = time.monotonic() + 2 * SESSION_MS / 1000
    while time.monotonic() < ends_at:
        harness.wait_for_more_records()
    harness.wait_for_more_records()


def finish(flow: CopyFlow, harness: CopyHarness, topics: Mapping[str, int]) -> None:
    """Copy the rest at full speed, and compare every record."""
    harness.conductor.set_rate(0)
    harness.wait_until_caught_up(flow.source_end_offsets(topics))
    harness.drain()
    flow.assert_mirrored(topics, fences=0, harness=harness)


def with_password_file(properties: Mapping[str, str], file: Path) -> dict[str, str]:
    """Return client properties that take the password from a file."""
    jaas = properties["sasl.jaas.config"].replace(PASSWORD, f"${{file:{file}:password}}")
    return {**properties, "sasl.jaas.config": jaas, **FILE_PROVIDER}


def test_a_changed_password_is_used_when_a_session_ends(
    flow: CopyFlow, writer: BatchWriter, topic: str, tmp_path: Path
) -> None:
    file = tmp_path / "access.properties"
    file.write_text(f"password={PASSWORD}\n")
    flow = replace(flow, source_properties=with_password_file(flow.source_properties, file))
    topics = create_mixed_topic(flow, topic, writer)
    with flow.harness(flow.job(topics, settings=SLOW_COPY)) as harness:
        harness.wait_for_snapshot("copying to begin", has_copied_records)
        with Admin(flow.source) as admin:
            admin.alter_user_scram_credentials({MIRROR: NEXT_PASSWORD})
        file.write_text(f"password={NEXT_PASSWORD}\n")
        copy_for_two_sessions(harness)
        finish(flow, harness, topics)

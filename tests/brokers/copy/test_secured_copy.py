"""Logins that end and secrets that change while records are copied: every record arrives once."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from sparkmirror.cluster.admin import Admin
from sparkmirror.lab.cluster.certificates import CertificateAuthority
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec, ListenerProtocol
from tests.brokers.conftest import COPY_PROPERTIES
from tests.support.copy.copy_flow import CopyFlow
from tests.support.copy.copy_harness import CopyHarness
from tests.support.copy.fault_scenario import SLOW_COPY, create_mixed_topic, has_copied_records
from tests.support.kafka.batch_writer import BatchWriter
from tests.support.kafka.clusters import StartCluster, UniqueName
from tests.support.security.java_stores import (
    key_store_properties,
    trust_store_properties,
    write_key_store,
    write_trust_store,
)
from tests.support.security.oauth_server import OAuthServer, running_oauth_server
from tests.support.waiting import wait_until

SESSION_MS = 5000
TOKEN_S = 8.0
MIRROR, MOVING = "mirror", "moving"
"""Users; the password of the second one changes."""
PASSWORD, NEXT_PASSWORD = "first password", "second password"
FILE_PROVIDER = {
    "config.providers": "file",
    "config.providers.file.class": ("org.apache.kafka.common.config.provider.FileConfigProvider"),
}


@pytest.fixture(scope="module")
def oauth_server() -> Iterator[OAuthServer]:
    """Issues short tokens to the mirror."""
    with running_oauth_server({MIRROR: PASSWORD}) as server:
        server.lifetime_s = TOKEN_S
        yield server


@pytest.fixture(scope="module")
def secured(start_module_cluster: StartCluster, oauth_server: OAuthServer) -> Cluster:
    """One broker with short sessions and certificates of clients."""
    return start_module_cluster(
        ClusterSpec(
            name="secured-copy",
            fast_start=True,
            listeners=(ListenerProtocol.SASL_SSL, ListenerProtocol.SSL),
            mutual_tls=True,
            users={"root": "roots password", MIRROR: PASSWORD, MOVING: PASSWORD},
            oauth=oauth_server.endpoints,
            properties={
                **COPY_PROPERTIES,
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
    flow: CopyFlow, secured: Cluster, writer: BatchWriter, topic: str, tmp_path: Path
) -> None:
    file = tmp_path / "access.properties"
    file.write_text(f"password={PASSWORD}\n")
    moving = secured.client_properties(ListenerProtocol.SASL_SSL, MOVING, "SCRAM-SHA-256")
    flow = replace(flow, source_properties=with_password_file(moving, file))
    topics = create_mixed_topic(flow, topic, writer)
    with flow.harness(flow.job(topics, settings=SLOW_COPY)) as harness:
        harness.wait_for_snapshot("copying to begin", has_copied_records)
        with Admin(flow.source) as admin:
            admin.alter_user_scram_credentials({MOVING: NEXT_PASSWORD})
        file.write_text(f"password={NEXT_PASSWORD}\n")
        copy_for_two_sessions(harness)
        finish(flow, harness, topics)


# -- certificates ----------------------------------------------------------------------------------


def test_stores_with_certificates_of_another_authority_are_used_when_they_replace_the_old_ones(
    flow: CopyFlow, secured: Cluster, writer: BatchWriter, topic: str, tmp_path: Path
) -> None:
    trust, key = tmp_path / "truststore.jks", tmp_path / "keystore.jks"
    _write_stores(secured, trust, key)
    flow = replace(
        flow,
        source_properties={
            **without_stores(flow.source_properties),
            **trust_store_properties(trust),
        },
        target_properties={
            **without_stores(flow.target_properties),
            **trust_store_properties(trust),
            **key_store_properties(key),
        },
    )
    topics = create_mixed_topic(flow, topic, writer)
    with flow.harness(flow.job(topics, settings=SLOW_COPY)) as harness:
        harness.wait_for_snapshot("copying to begin", has_copied_records)
        _replace_authority(secured, tmp_path / "tls")
        _write_stores(secured, trust, key)
        secured.restart_broker(1)
        harness.wait_for_more_records()
        finish(flow, harness, topics)


def _write_stores(secured: Cluster, trust: Path, key: Path) -> None:
    authority = CertificateAuthority(secured.directory / "tls")
    write_trust_store(authority, trust)
    write_key_store(authority, MIRROR, key)


def _replace_authority(secured: Cluster, directory: Path) -> None:
    """Replace all certificates of the cluster. The broker reads its own at the next start."""
    authority = CertificateAuthority.create(directory)
    for name in ("broker", *secured.spec.users):
        authority.issue(name)
    shutil.copytree(directory, secured.directory / "tls", dirs_exist_ok=True)


def without_stores(properties: Mapping[str, str]) -> dict[str, str]:
    """Return client properties without their stores."""
    return {
        key: value
        for key, value in properties.items()
        if not key.startswith(("ssl.truststore.", "ssl.keystore."))
    }


# -- tokens ----------------------------------------------------------------------------------------


@pytest.fixture
def token_flow(
    flow: CopyFlow, secured: Cluster, oauth_server: OAuthServer, monkeypatch: pytest.MonkeyPatch
) -> CopyFlow:
    """The same flow, with tokens at the target."""
    monkeypatch.setenv("SPARKMIRROR_OAUTHBEARER_ALLOWED_URLS", oauth_server.endpoints.token_url)
    tokens = secured.client_properties(ListenerProtocol.SASL_SSL, MIRROR, "OAUTHBEARER")
    return replace(flow, target_properties=tokens)


def test_tokens_are_renewed_and_without_one_the_partitions_wait_with_the_reason(
    token_flow: CopyFlow, oauth_server: OAuthServer, writer: BatchWriter, topic: str
) -> None:
    topics = create_mixed_topic(token_flow, topic, writer)
    with token_flow.harness(token_flow.job(topics, settings=SLOW_COPY)) as harness:
        harness.wait_for_snapshot("copying to begin", has_copied_records)
        task_processes, issued = dict(harness.tasks), oauth_server.tokens_issued
        wait_until(lambda: oauth_server.tokens_issued >= issued + 2, "both processes to renew")
        harness.wait_for_more_records()
        oauth_server.outage = (503, "temporarily_unavailable")
        try:
            harness.wait_for_snapshot(
                "the reason",
                lambda seen: all(
                    "it needs a token" in view.reason and "503" in view.reason
                    for view in seen.partitions.values()
                ),
            )
        finally:
            oauth_server.outage = None
        harness.wait_for_more_records()
        assert dict(harness.tasks) == task_processes, "no task has failed"
        finish(token_flow, harness, topics)

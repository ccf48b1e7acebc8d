"""Stores that change are used at the next connection, without a restart."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.lab.cluster.certificates import CertificateAuthority
from sparkmirror.security.reloading_key_stores import ReloadingKeyStores
from sparkmirror.security.tls.reloading_ssl_context import (
    client_ssl_factory,
    rotating_server_context,
)
from sparkmirror.security.tls.ssl_config import SslConfig
from sparkmirror.security.tls.ssl_context import client_context, server_context
from tests.support.security.tls_handshake import shake_hands


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    created = CertificateAuthority.create(tmp_path_factory.mktemp("lab") / "tls")
    for name in ("broker", "alice", "bob"):
        created.issue(name)
    return created


def replace_file(source: Path, target: Path) -> None:
    """As a program that rotates certificates does: write beside, then rename."""
    beside = target.with_suffix(".new")
    shutil.copyfile(source, beside)
    beside.replace(target)


def listener(authority: CertificateAuthority) -> dict[str, str]:
    return {
        "ssl.keystore.location": str(authority.key_store("broker")),
        "ssl.truststore.location": str(authority.ca_certificate),
        "ssl.client.auth": "required",
    }


def test_connections_share_a_context_until_a_store_changes(
    authority: CertificateAuthority, tmp_path: Path
) -> None:
    own = tmp_path / "own.pem"
    replace_file(authority.key_store("alice"), own)
    security = ReloadingKeyStores.from_properties(
        {
            "security.protocol": "SSL",
            "ssl.truststore.location": str(authority.ca_certificate),
            "ssl.keystore.location": str(own),
        }
    )
    first = security.current()
    assert security.current() is first
    assert first.ssl_context is not None
    server = server_context(listener(authority))
    assert shake_hands(first.ssl_context, server).client_name == "alice"
    replace_file(authority.key_store("bob"), own)
    second = security.current()
    assert second.ssl_context is not None
    assert shake_hands(second.ssl_context, server).client_name == "bob"
    assert security.current().ssl_context is second.ssl_context
    assert (second.protocol, second.login) == (first.protocol, first.login)


def test_a_trust_store_that_changes_is_read_again(
    authority: CertificateAuthority, tmp_path: Path
) -> None:
    other = CertificateAuthority.create(tmp_path / "tls")
    trust = tmp_path / "trust.p12"
    replace_file(other.trust_store, trust)
    factory = client_ssl_factory(
        SslConfig.from_properties(
            {"ssl.truststore.location": str(trust), "ssl.truststore.password": "changeit"}
        )
    )
    before = factory.current().get_ca_certs()
    replace_file(authority.trust_store, trust)
    assert factory.current().get_ca_certs() != before


def test_a_changed_store_that_cannot_be_read_leaves_the_previous_one_in_use(
    authority: CertificateAuthority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    own = tmp_path / "own.pem"
    replace_file(authority.key_store("alice"), own)
    factory = client_ssl_factory(SslConfig.from_properties({"ssl.keystore.location": str(own)}))
    first = factory.current()
    for change in (lambda: own.write_text("half a file"), own.unlink):
        caplog.clear()
        change()
        for _ in range(3):
            assert factory.current() is first
        (message,) = caplog.messages
        assert "connections go on with the previous certificates" in message
        assert f"ssl.keystore.location: {own}" in message
    replace_file(authority.key_store("bob"), own)
    assert factory.current() is not first


def test_a_listener_uses_a_changed_store_at_the_next_handshake(
    authority: CertificateAuthority, tmp_path: Path
) -> None:
    own = tmp_path / "own.pem"
    trust = tmp_path / "trust.pem"
    replace_file(authority.key_store("broker"), own)
    other = CertificateAuthority.create(tmp_path / "tls")
    other.issue("carol")
    replace_file(authority.ca_certificate, trust)
    server = rotating_server_context(
        SslConfig.from_properties(
            {
                "ssl.keystore.location": str(own),
                "ssl.truststore.location": str(trust),
                "ssl.client.auth": "required",
            }
        )
    )
    client = client_context(
        {
            "ssl.truststore.location": str(authority.ca_certificate),
            "ssl.keystore.location": str(authority.key_store("alice")),
        }
    )
    done = shake_hands(client, server)
    assert (done.server_name, done.client_name) == ("broker", "alice")
    replace_file(authority.key_store("bob"), own)
    assert shake_hands(client, server).server_name == "bob"
    replace_file(other.ca_certificate, trust)
    carol = client_context(
        {
            "ssl.truststore.location": str(authority.ca_certificate),
            "ssl.keystore.location": str(other.key_store("carol")),
        }
    )
    assert shake_hands(carol, server).client_name == "carol"


def test_the_clients_of_a_cluster_reload_their_stores(authority: CertificateAuthority) -> None:
    access = ClusterAccess.from_properties(
        "west",
        {
            "bootstrap.servers": "localhost:1",
            "security.protocol": "SSL",
            "ssl.truststore.location": str(authority.ca_certificate),
        },
    )
    assert isinstance(access.security, ReloadingKeyStores)
    assert access.security.protocol == "SSL"

"""Certificates of the lab: of users, and of brokers at the loopback address."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import pkcs12

from sparkmirror.lab.cluster.certificates import (
    STORE_PASSWORD,
    CertificateAuthority,
    CertificateFault,
)
from sparkmirror.security.tls.ssl_context import client_context
from tests.support.security.tls_handshake import shake_hands


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    created = CertificateAuthority.create(tmp_path_factory.mktemp("lab") / "tls")
    for name in ("broker", "alice"):
        created.issue(name)
    return created


def server_context(authority: CertificateAuthority, *, mutual: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.key_store("broker"))
    if mutual:
        context.load_verify_locations(authority.ca_certificate)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "::1"])
def test_broker_certificate_is_valid_for_every_loopback_name(
    authority: CertificateAuthority, name: str
) -> None:
    client = client_context({"ssl.truststore.location": str(authority.ca_certificate)})
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    shake_hands(client, server_context(authority), name)


def test_broker_certificate_is_invalid_for_another_name(authority: CertificateAuthority) -> None:
    client = client_context({"ssl.truststore.location": str(authority.ca_certificate)})
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        shake_hands(client, server_context(authority), "kafka.example.com")


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (CertificateFault.EXPIRED, "certificate has expired"),
        (CertificateFault.OTHER_HOST, "IP address mismatch"),
    ],
    ids=["expired", "other-host"],
)
def test_certificate_with_a_fault_is_refused_for_that_fault(
    authority: CertificateAuthority, fault: CertificateFault, reason: str
) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(authority.issue("faulty", fault))
    client = client_context({"ssl.truststore.location": str(authority.ca_certificate)})
    with pytest.raises(ssl.SSLCertVerificationError, match=reason):
        shake_hands(client, server, "127.0.0.1")


def test_user_certificate_has_the_name_of_the_user(authority: CertificateAuthority) -> None:
    client = client_context(
        {
            "ssl.truststore.location": str(authority.ca_certificate),
            "ssl.keystore.location": str(authority.key_store("alice")),
        }
    )
    done = shake_hands(client, server_context(authority, mutual=True), "localhost")
    assert done.client_name == "alice"


def test_trust_store_contains_the_authority(authority: CertificateAuthority) -> None:
    store = pkcs12.load_pkcs12(authority.trust_store.read_bytes(), STORE_PASSWORD.encode())
    assert store.key is None
    (entry,) = store.additional_certs
    assert entry.certificate.subject.rfc4514_string() == "CN=sparkmirror lab"


def test_only_the_owner_may_read_keys(authority: CertificateAuthority) -> None:
    for file in (authority.key_store("alice"), authority.ca_certificate.with_name("ca-key.pem")):
        assert file.stat().st_mode & 0o077 == 0


def test_two_authorities_do_not_trust_each_other(
    authority: CertificateAuthority, tmp_path: Path
) -> None:
    other = CertificateAuthority.create(tmp_path / "tls")
    client = client_context({"ssl.truststore.location": str(other.ca_certificate)})
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(client, server_context(authority), "localhost")

"""TLS contexts from stores of every type: handshakes between our clients and our listeners."""

from __future__ import annotations

import logging
import shutil
import ssl
from contextlib import suppress
from pathlib import Path

import pytest

from sparkmirror.lab.cluster.certificates import CertificateAuthority
from sparkmirror.security.tls.ssl_context import client_context, server_context
from tests.support.golden import GOLDEN
from tests.support.security.keytool_stores import KEY_PASSWORD, STORE_PASSWORD
from tests.support.security.tls_handshake import shake_hands

STORES = GOLDEN / "stores" / "java17"
TRUST = {
    "ssl.truststore.location": str(STORES / "truststore.jks"),
    "ssl.truststore.password": STORE_PASSWORD,
}
TRUST_STORES = [
    "truststore.jks",
    "trust.jks",
    "trust.jceks",
    "trust-legacy.pkcs12",
    "trust-unprotected.pkcs12",
    "ca.pem",
]
LEAF = "leaf"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    created = CertificateAuthority.create(tmp_path_factory.mktemp("lab") / "tls")
    for name in ("broker", "alice"):
        created.issue(name)
    return created


def key_store(name: str, password: str = KEY_PASSWORD) -> dict[str, str]:
    settings = {
        "ssl.keystore.location": str(STORES / name),
        "ssl.keystore.password": STORE_PASSWORD,
    }
    return settings if name.endswith("pkcs12") else {**settings, "ssl.key.password": password}


def test_the_test_stores_have_a_name_that_hides_their_type() -> None:
    assert (STORES / "truststore.jks").read_bytes().startswith(b"\x30")


@pytest.mark.parametrize("name", TRUST_STORES)
def test_a_trust_store_of_each_type_trusts_its_authority(name: str) -> None:
    trust = {"ssl.truststore.location": str(STORES / name)}
    if name != "ca.pem":
        trust["ssl.truststore.password"] = STORE_PASSWORD
    server = server_context(key_store("chain.pkcs12"))
    assert shake_hands(client_context(trust), server).server_name == LEAF


@pytest.mark.parametrize("name", ["chain.jks", "chain.jceks", "chain.pkcs12"])
def test_the_whole_chain_is_sent_from_a_key_store_of_each_type(name: str) -> None:
    """The other side knows the root only, so it needs the authority between."""
    server = server_context({**key_store("chain.jks"), **TRUST, "ssl.client.auth": "required"})
    client = client_context({**key_store(name), **TRUST})
    done = shake_hands(client, server)
    assert (done.client_name, done.server_name) == (LEAF, LEAF)


@pytest.mark.parametrize("name", ["rsa", "ec", "ed25519"])
def test_a_key_of_each_algorithm_serves_a_listener(name: str) -> None:
    client = client_context(
        {
            "ssl.truststore.location": str(STORES / f"{name}.jks"),
            "ssl.endpoint.identification.algorithm": "",
        }
    )
    assert shake_hands(client, server_context(key_store(f"{name}.jks"))).server_name == "me"


def test_of_several_keys_the_one_that_the_other_side_accepts_is_shown() -> None:
    server = server_context(key_store("all.pkcs12"))
    for algorithm, suite in (("rsa", "ECDHE-RSA"), ("ec", "ECDHE-ECDSA")):
        client = client_context(
            {
                "ssl.truststore.location": str(STORES / "all.jks"),
                "ssl.endpoint.identification.algorithm": "",
                "ssl.cipher.suites": (f"TLS_{suite.replace('-', '_')}_WITH_AES_128_GCM_SHA256"),
            }
        )
        client.verify_mode = ssl.CERT_NONE
        done = shake_hands(client, server)
        cipher = done.client.cipher()
        assert cipher is not None and cipher[0].startswith(suite), algorithm


def test_the_certificate_of_a_broker_may_be_trusted_by_itself(
    authority: CertificateAuthority, tmp_path: Path
) -> None:
    """As in Java: a trust store need not hold an authority that signs itself."""
    blocks = authority.key_store("broker").read_text().split("-----BEGIN CERTIFICATE-----")
    own = tmp_path / "broker.pem"
    own.write_text(f"-----BEGIN CERTIFICATE-----{blocks[1]}")
    client = client_context({"ssl.truststore.location": str(own)})
    server = server_context({"ssl.keystore.location": str(authority.key_store("broker"))})
    assert shake_hands(client, server).server_name == "broker"


def test_the_truststore_may_be_a_file_or_inline_in_one_line(
    authority: CertificateAuthority,
) -> None:
    pem = authority.ca_certificate.read_text()
    for settings in (
        {"ssl.truststore.location": str(authority.ca_certificate)},
        {"ssl.truststore.certificates": pem},
        {"ssl.truststore.certificates": pem.replace("\n", " ")},
    ):
        (trusted,) = client_context(settings).get_ca_certs()
        assert trusted["subject"] == ((("commonName", "sparkmirror lab"),),)


def test_without_a_trust_store_the_authorities_of_the_system_are_trusted(
    authority: CertificateAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.ca_certificate))
    server = server_context({"ssl.keystore.location": str(authority.key_store("broker"))})
    assert shake_hands(client_context({}), server).server_name == "broker"


def open_files() -> set[str]:
    """The files of all descriptors, also those without a name. Other threads may have sockets."""
    found = set()
    for descriptor in Path("/dev/fd").iterdir():
        with suppress(OSError):  # it has been closed
            found.add(str(descriptor.readlink()))
    return {file for file in found if file.startswith("/")}


def test_an_inline_key_leaves_no_file_and_no_descriptor(authority: CertificateAuthority) -> None:
    pem = authority.key_store("alice").read_text()
    key, _, chain = pem.partition("-----BEGIN CERTIFICATE-----")
    client_context({"ssl.keystore.location": str(authority.key_store("alice"))})
    before = open_files()
    client = client_context(
        {
            "ssl.truststore.location": str(authority.ca_certificate),
            "ssl.keystore.key": key.replace("\n", " "),
            "ssl.keystore.certificate.chain": f"-----BEGIN CERTIFICATE-----{chain}",
        }
    )
    assert not open_files() - before
    server = server_context(
        {
            "ssl.keystore.location": str(authority.key_store("broker")),
            "ssl.truststore.location": str(authority.ca_certificate),
            "ssl.client.auth": "required",
        }
    )
    assert shake_hands(client, server).client_name == "alice"


def test_a_listener_may_request_a_client_certificate_without_requiring_it(
    authority: CertificateAuthority,
) -> None:
    server = server_context(
        {
            "ssl.keystore.location": str(authority.key_store("broker")),
            "ssl.truststore.location": str(authority.ca_certificate),
            "ssl.client.auth": "requested",
        }
    )
    trust = {"ssl.truststore.location": str(authority.ca_certificate)}
    assert shake_hands(client_context(trust), server).client_name == ""
    alice = {"ssl.keystore.location": str(authority.key_store("alice"))}
    assert shake_hands(client_context({**trust, **alice}), server).client_name == "alice"


def test_an_empty_identification_algorithm_stops_only_the_name_check() -> None:
    assert client_context(TRUST).check_hostname
    without = client_context({**TRUST, "ssl.endpoint.identification.algorithm": ""})
    assert not without.check_hostname
    assert without.verify_mode == ssl.CERT_REQUIRED


def test_enabled_protocols_set_the_lowest_and_highest_tls_version() -> None:
    both = client_context(TRUST)
    only = client_context({**TRUST, "ssl.enabled.protocols": "TLSv1.3, TLSv1.1"})
    assert both.minimum_version == ssl.TLSVersion.TLSv1_2
    assert both.maximum_version == ssl.TLSVersion.TLSv1_3
    assert only.minimum_version == only.maximum_version == ssl.TLSVersion.TLSv1_3


def test_a_type_that_contradicts_the_content_is_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = tmp_path / "trust.store"
    shutil.copy(STORES / "trust.jks", store)
    trust = {"ssl.truststore.location": str(store)}
    for store_type in ("JKS", "jks", "PKCS12"):  # Java reads these two under either name
        client_context({**trust, "ssl.truststore.type": store_type})
    assert caplog.records == []
    for _ in range(2):
        client_context({**trust, "ssl.truststore.type": "PEM"})
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage() == (
        f"ssl.truststore.type is PEM, but {store} is a JKS store: the content decides"
    )


def test_a_key_store_that_others_may_read_is_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = tmp_path / "client.pkcs12"
    shutil.copyfile(STORES / "chain.pkcs12", store)
    settings = {
        "ssl.keystore.location": str(store),
        "ssl.keystore.password": STORE_PASSWORD,
        "ssl.truststore.location": str(STORES / "ca.pem"),
    }
    store.chmod(0o600)
    client_context(settings)
    assert caplog.messages == []
    store.chmod(0o640)
    for _ in range(2):
        client_context(settings)
    (message,) = caplog.messages
    assert message == (
        f"ssl.keystore.location: {store} holds a secret, and its group may read it:"
        f" chmod 600 {store}"
    )

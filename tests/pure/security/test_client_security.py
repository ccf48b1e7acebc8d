"""Java's client properties become settings of our clients."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

import pytest

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.config.secrets.password import Password
from sparkmirror.errors import ConfigError
from sparkmirror.lab.cluster.certificates import CertificateAuthority
from sparkmirror.security import tls
from sparkmirror.security.client_security import ClientSecurity
from sparkmirror.security.logins import PasswordLogin
from sparkmirror.wire.net.address import Address

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def sasl(mechanism: str, line: str, protocol: str = "SASL_PLAINTEXT") -> dict[str, str]:
    return {
        "security.protocol": protocol,
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": line,
    }


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    made = CertificateAuthority.create(tmp_path_factory.mktemp("lab") / "tls")
    made.issue("alice")
    return made


def test_no_properties_mean_plaintext() -> None:
    assert ClientSecurity.from_properties({}) == ClientSecurity(protocol="PLAINTEXT")


def test_the_protocol_may_be_in_lower_case() -> None:
    line = f'{PLAIN} required username="alice" password="s3cret";'
    for protocol in ("sasl_ssl", "Sasl_Ssl"):
        security = ClientSecurity.from_properties(sasl("PLAIN", line, protocol))
        assert security == ClientSecurity.from_properties(sasl("PLAIN", line, "SASL_SSL"))
        assert security.ssl_context is not None
    with pytest.raises(ConfigError, match=r"security\.protocol tls is unknown"):
        ClientSecurity.from_properties({"security.protocol": "tls"})


@pytest.mark.parametrize(
    ("mechanism", "module"),
    [("PLAIN", PLAIN), ("SCRAM-SHA-256", SCRAM), ("SCRAM-SHA-512", SCRAM)],
)
def test_a_login_is_read_from_the_jaas_config(mechanism: str, module: str) -> None:
    line = f'{module} required username="alice" password="s3cret";'
    security = ClientSecurity.from_properties(sasl(mechanism, line))
    assert security.protocol == "SASL_PLAINTEXT"
    assert security.login == PasswordLogin(
        mechanism=mechanism, username="alice", password=Password("s3cret")
    )
    assert "s3cret" not in repr(security)


@pytest.mark.parametrize(
    ("properties", "fault"),
    [
        ({"security.protocol": "TLS"}, "security.protocol TLS is unknown"),
        (sasl("NOPE", "x required;"), "sasl.mechanism NOPE is not supported"),
        ({"security.protocol": "SASL_SSL"}, "sasl.jaas.config is missing"),
        (sasl("PLAIN", "com.acme.Module required;"), "names a login module that is not known"),
        (sasl("PLAIN", f"{PLAIN} required username=a;"), "lacks password"),
        (sasl("PLAIN", f"{PLAIN} required;"), "lacks username and password"),
        (sasl("PLAIN", ""), "JAAS"),
    ],
    ids=["protocol", "mechanism", "default", "module", "password", "both", "empty"],
)
def test_an_invalid_property_is_named(properties: dict[str, str], fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        ClientSecurity.from_properties(properties)


def test_the_truststore_may_be_a_file_or_inline_in_one_line(
    authority: CertificateAuthority,
) -> None:
    pem = authority.ca_certificate.read_text()
    inline = pem.replace("\n", " ")
    for said in (
        {"ssl.truststore.location": str(authority.ca_certificate)},
        {"ssl.truststore.certificates": pem},
        {"ssl.truststore.certificates": inline},
    ):
        (trusted,) = tls.client_context(said).get_ca_certs()
        assert trusted["subject"] == ((("commonName", "sparkmirror lab"),),)


def test_an_inline_key_leaves_no_file_and_no_descriptor(authority: CertificateAuthority) -> None:
    pem = authority.key_store("alice").read_text()
    key, _, chain = pem.partition("-----BEGIN CERTIFICATE-----")
    before = len(os.listdir("/dev/fd"))  # noqa: PTH208 - counts descriptors
    made = tls.client_context(
        {
            "ssl.truststore.location": str(authority.ca_certificate),
            "ssl.keystore.key": key,
            "ssl.keystore.certificate.chain": f"-----BEGIN CERTIFICATE-----{chain}",
        }
    )
    assert made.verify_mode == ssl.CERT_REQUIRED
    assert len(os.listdir("/dev/fd")) == before  # noqa: PTH208


def test_an_empty_identification_algorithm_stops_only_the_name_check(
    authority: CertificateAuthority,
) -> None:
    location = {"ssl.truststore.location": str(authority.ca_certificate)}
    assert tls.client_context(location).check_hostname
    without = tls.client_context({**location, "ssl.endpoint.identification.algorithm": ""})
    assert not without.check_hostname
    assert without.verify_mode == ssl.CERT_REQUIRED


def test_enabled_protocols_set_the_lowest_and_highest_tls_version(
    authority: CertificateAuthority,
) -> None:
    location = {"ssl.truststore.location": str(authority.ca_certificate)}
    both = tls.client_context(location)
    only = tls.client_context({**location, "ssl.enabled.protocols": "TLSv1.3, TLSv1.1"})
    assert both.minimum_version == ssl.TLSVersion.TLSv1_2
    assert both.maximum_version == ssl.TLSVersion.TLSv1_3
    assert only.minimum_version == only.maximum_version == ssl.TLSVersion.TLSv1_3


def test_an_invalid_key_or_certificate_is_named_by_its_property(
    authority: CertificateAuthority, tmp_path: Path
) -> None:
    store = tmp_path / "store.jks"
    store.write_bytes(b"\xfe\xed\xfe\xed")
    trust = {"ssl.truststore.location": str(authority.ca_certificate)}
    for said, fault in (
        ({"ssl.truststore.location": str(store)}, "ssl.truststore.location: .* is not PEM"),
        ({"ssl.truststore.location": "/nowhere/ca.pem"}, "cannot be read: No such file"),
        ({"ssl.truststore.certificates": "no pem"}, "holds no certificate"),
        ({**trust, "ssl.keystore.location": str(authority.ca_certificate)}, "holds no key"),
        ({"ssl.enabled.protocols": "SSLv3"}, "ssl.enabled.protocols must hold"),
    ):
        with pytest.raises(ConfigError, match=fault):
            tls.client_context(said)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost:9092", Address("localhost", 9092)),
        (" kafka-1.example.com:1 ", Address("kafka-1.example.com", 1)),
        ("[::1]:9092", Address("::1", 9092)),
    ],
    ids=["name", "blanks", "ipv6"],
)
def test_addresses_are_host_and_port(text: str, address: Address) -> None:
    assert Address.parse(text) == address


@pytest.mark.parametrize("servers", ["", "localhost", "localhost:", ":9092", "a:b"])
def test_bootstrap_servers_must_name_a_port(servers: str) -> None:
    with pytest.raises(ConfigError):
        ClusterAccess.from_properties("west", {"bootstrap.servers": servers})


def test_several_servers_are_separated_by_commas() -> None:
    access = ClusterAccess.from_properties("west", {"bootstrap.servers": "a:1,b:2"})
    assert access.bootstrap_servers == (Address("a", 1), Address("b", 2))

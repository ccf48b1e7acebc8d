"""Java's client properties become settings of our clients."""

from __future__ import annotations

import pytest

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.config.secrets.password import Password
from sparkmirror.errors import ConfigError
from sparkmirror.security.client_security import ClientSecurity
from sparkmirror.security.sasl_credentials import PasswordLogin
from sparkmirror.wire.net.address import Address

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def sasl(mechanism: str, line: str, protocol: str = "SASL_PLAINTEXT") -> dict[str, str]:
    return {
        "security.protocol": protocol,
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": line,
    }


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

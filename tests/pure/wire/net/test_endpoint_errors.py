"""Addresses of brokers, and the errors of their sockets."""

from __future__ import annotations

import socket
import ssl

import pytest

from sparkmirror.config.files.client_config_line_numbers import with_written_keys
from sparkmirror.config.files.properties import parse_properties
from sparkmirror.config.secrets.password import Password
from sparkmirror.errors import ClusterError, ClusterTimeout, ClusterUnavailable, NotAuthorized
from sparkmirror.security.client_security import ClientSecurity
from sparkmirror.security.sasl_credentials import PasswordLogin
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.connection import ClientConfig
from sparkmirror.wire.net.endpoint_errors import Endpoint

ENDPOINT = Endpoint(
    cluster="primary", address=Address("b1.example", 9093), security_protocol="SASL_SSL"
)
UNTRUSTED = ssl.SSLCertVerificationError(1, "certificate verify failed")
UNTRUSTED.verify_message = "self-signed certificate in certificate chain"
ALERT = ssl.SSLError(1, "[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] alert")
ALERT.reason = "TLSV13_ALERT_CERTIFICATE_REQUIRED"


@pytest.mark.parametrize(
    ("text", "address", "written"),
    [
        ("b1:9092", Address("b1", 9092), "b1:9092"),
        (" 10.0.0.1:1 ", Address("10.0.0.1", 1), "10.0.0.1:1"),
        ("[::1]:9092", Address("::1", 9092), "[::1]:9092"),
    ],
    ids=["name", "ipv4", "ipv6"],
)
def test_an_address_is_read_and_written(text: str, address: Address, written: str) -> None:
    assert Address.parse(text) == address
    assert str(address) == written


@pytest.mark.parametrize("text", ["b1", "b1:", ":9092", "b1:port", ""])
def test_an_invalid_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="host:port"):
        Address.parse(text)


@pytest.mark.parametrize("text", ["b1:0", "b1:65536", "[::1]:99999"])
def test_a_port_out_of_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not between 1 and 65535"):
        Address.parse(text)


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (TimeoutError(), ClusterTimeout, "no answer in time"),
        (ConnectionRefusedError(111, "refused"), ClusterUnavailable, "connection refused"),
        (socket.gaierror(-2, "unknown"), ClusterUnavailable, "cannot be resolved: unknown"),
        (ConnectionResetError(104, "Reset"), ClusterUnavailable, "Reset"),
        (UNTRUSTED, NotAuthorized, "not accepted: self-signed certificate in certificate chain"),
        (ALERT, NotAuthorized, "TLS failed: tlsv13 alert certificate required"),
        (ssl.SSLEOFError(8, "EOF"), ClusterUnavailable, "it closed the connection"),
        (ssl.SSLZeroReturnError(6, "EOF"), ClusterUnavailable, "it closed the connection"),
    ],
    ids=["late", "refused", "name", "reset", "untrusted", "alert", "eof", "zero-return"],
)
def test_a_socket_error_becomes_a_cluster_error(
    error: OSError, kind: type[ClusterError], text: str
) -> None:
    for starting in (True, False):
        ours = ENDPOINT.translate_os_error(error, starting=starting)
        assert type(ours) is kind
        assert str(ours).startswith("primary: SASL_SSL b1.example:9093: ")
        assert text in str(ours)
        assert "; check" in str(ours)


@pytest.mark.parametrize(
    ("code", "key"),
    [
        (10, "the clock of this computer"),
        (19, "ssl.truststore.location"),
        (20, "ssl.truststore.certificates"),
        (62, "ssl.endpoint.identification.algorithm"),
        (64, "advertised.listeners"),
        (23, "ssl.truststore.location, ssl.keystore.location"),
    ],
    ids=["expired", "self-signed", "unknown-issuer", "host", "ip", "other"],
)
def test_a_refused_certificate_names_the_properties_to_check(code: int, key: str) -> None:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code, error.verify_message = code, "reason"
    assert key in str(ENDPOINT.translate_os_error(error, starting=True))


@pytest.mark.parametrize(
    ("reason", "key"),
    [
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", "ssl.keystore.location"),
        ("SSLV3_ALERT_BAD_CERTIFICATE", "ssl.keystore.location"),
        ("TLSV1_ALERT_UNKNOWN_CA", "ssl.keystore.location"),
        ("TLSV1_ALERT_PROTOCOL_VERSION", "ssl.enabled.protocols"),
        ("SSLV3_ALERT_HANDSHAKE_FAILURE", "ssl.cipher.suites"),
        ("WRONG_VERSION_NUMBER", "security.protocol"),
    ],
)
def test_an_alert_names_the_properties_to_check(reason: str, key: str) -> None:
    error = ssl.SSLError(1, reason)
    error.reason = reason
    assert key in str(ENDPOINT.translate_os_error(error, starting=True))


def test_an_error_before_the_first_response_names_the_port() -> None:
    reset = ConnectionResetError(104, "Reset")
    assert "right port" in str(ENDPOINT.translate_os_error(reset, starting=True))
    assert "right port" not in str(ENDPOINT.translate_os_error(reset, starting=False))


def test_a_client_does_not_show_its_secrets() -> None:
    login = PasswordLogin(mechanism="PLAIN", username="ann", password=Password("pw"))
    security = ClientSecurity(protocol="SASL_PLAINTEXT", login=login)
    client = ClientConfig(cluster="primary", security=security)
    assert "pw" not in repr(client)
    assert "'pw'" not in repr(security)


def test_an_error_names_file_and_line_of_the_keys_to_look_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = parse_properties(
        b"clusters=primary,x\nprimary.ssl.truststore.location=/t\n", file="mm2.properties"
    )
    for name, value in with_written_keys(file, {}).items():
        monkeypatch.setenv(name, value)
    for error in (
        ENDPOINT.not_authorized("its certificate is not accepted", "check ssl.truststore.location"),
        ENDPOINT.unavailable("ssl.truststore.location: /t cannot be read", "it is read again"),
        ENDPOINT.timed_out("no answer", "check ssl.truststore.location"),
    ):
        assert str(error).endswith("; see mm2.properties, line 2: primary.ssl.truststore.location")
    refused = ENDPOINT.translate_os_error(ConnectionRefusedError(), starting=True)
    assert str(refused).endswith("connection refused; check whether the broker runs")

"""Listeners: parsing, binding, IPv6, TLS."""

from __future__ import annotations

import shutil
import socket
import ssl
from pathlib import Path

import pytest
from cryptography.x509 import load_der_x509_certificate
from cryptography.x509.oid import NameOID

from sparkmirror.config.tables.distributed import DISTRIBUTED
from sparkmirror.errors import ConfigError
from sparkmirror.lab.cluster.certificates import CertificateAuthority
from sparkmirror.rest.http.listener import RestListener
from sparkmirror.rest.server import RestServer
from sparkmirror.rest.server_options import RestOptions
from sparkmirror.rest.settings import rest_settings
from sparkmirror.security.tls.ssl_context import server_context
from tests.support.reserved_port import reserved_port
from tests.support.rest.rest_client import RestClient, request_once, running_rest_server
from tests.support.rest.scripted_herder import ScriptedHerder

HAS_IPV6 = socket.has_dualstack_ipv6()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    authority = CertificateAuthority.create(tmp_path_factory.mktemp("rest") / "tls")
    authority.issue("server")
    authority.issue("alice")
    return authority


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("http://:8083", "", 8083),
        ("HTTP://localhost:0", "localhost", 0),
        (" https://127.0.0.1:8443/ ", "127.0.0.1", 8443),
        ("http://[::1]:8083", "::1", 8083),
    ],
)
def test_a_listener_is_parsed(text: str, host: str, port: int) -> None:
    listener = RestListener.parse(text)
    assert (listener.host, listener.port) == (host, port)
    assert RestListener.parse(str(listener)) == listener


@pytest.mark.parametrize(
    "text", ["localhost:8083", "ftp://:8083", "http://a", "http://a:99999", "http://::1:8083", ""]
)
def test_a_malformed_listener_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="http://host:port"):
        RestListener.parse(text)


def test_an_address_in_use_is_a_config_error_at_start() -> None:
    with running_rest_server(ScriptedHerder()) as first:
        second = RestServer(ScriptedHerder(), [RestListener.parse(first.address)], RestOptions())
        with pytest.raises(ConfigError, match=f"cannot listen on {first.address}: .*in use"):
            second.start()


def test_if_one_listener_cannot_be_bound_the_others_are_closed() -> None:
    with running_rest_server(ScriptedHerder()) as first, reserved_port() as port:
        free_listener = RestListener.parse(f"http://127.0.0.1:{port}")
        server = RestServer(
            ScriptedHerder(), [free_listener, RestListener.parse(first.address)], RestOptions()
        )
        with pytest.raises(ConfigError):
            server.start()
        free_listener.bind().close()


def test_the_server_answers_the_first_request_after_its_start(herder: ScriptedHerder) -> None:
    """A client that connects when `start` has returned is not refused, and need not try again."""
    herder.set_response(200, [])
    for _ in range(5):
        with running_rest_server(herder) as server:
            client = RestClient(server.address)
            assert client.request("GET", "/connectors").status == 200
            client.close()


@pytest.mark.skipif(not HAS_IPV6, reason="this computer has no IPv6")
@pytest.mark.parametrize("listener", ["http://[::1]:0", "http://:0"])
def test_ipv6_is_served(listener: str, herder: ScriptedHerder) -> None:
    herder.set_response(200, [])
    with running_rest_server(herder, listener=listener) as server:
        client = RestClient(f"http://[::1]:{server.address.rpartition(':')[2]}")
        assert client.request("GET", "/connectors").json == []
        client.close()


def test_a_listener_without_a_host_is_reached_by_ipv4(herder: ScriptedHerder) -> None:
    herder.set_response(200, [])
    with running_rest_server(herder, listener="http://:0") as server:
        client = RestClient(f"http://127.0.0.1:{server.address.rpartition(':')[2]}")
        assert client.request("GET", "/connectors").json == []
        client.close()


def test_https_is_served(authority: CertificateAuthority, herder: ScriptedHerder) -> None:
    tls = server_context({"ssl.keystore.location": str(authority.key_store("server"))})
    herder.set_response(201, {"name": "x", "config": {"name": "x"}, "tasks": [], "type": "source"})
    with running_rest_server(
        herder, RestOptions(tls=tls, access_log=False), listener="https://127.0.0.1:0"
    ) as server:
        client = RestClient(
            server.address, ssl.create_default_context(cafile=authority.ca_certificate)
        )
        answer = client.send_json("POST", "/connectors", {"name": "x", "config": {}})
        assert answer.headers["location"] == f"{server.address}/connectors/x"
        assert server.address.startswith("https://")
        client.close()


def test_https_may_require_a_client_certificate(
    authority: CertificateAuthority, herder: ScriptedHerder
) -> None:
    tls = server_context(
        {
            "ssl.keystore.location": str(authority.key_store("server")),
            "ssl.truststore.location": str(authority.ca_certificate),
            "ssl.client.auth": "required",
        }
    )
    herder.set_response(200, [])
    with running_rest_server(
        herder, RestOptions(tls=tls, access_log=False), listener="https://127.0.0.1:0"
    ) as server:
        without_certificate = ssl.create_default_context(cafile=authority.ca_certificate)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            request_once(server.address, "GET", "/connectors", without_certificate)
        with_certificate = ssl.create_default_context(cafile=authority.ca_certificate)
        with_certificate.load_cert_chain(authority.key_store("alice"))
        client = RestClient(server.address, with_certificate)
        assert client.request("GET", "/connectors").json == []
        client.close()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"], ids=["named", "by address"])
def test_a_renewed_certificate_is_served_without_a_restart(
    authority: CertificateAuthority, herder: ScriptedHerder, tmp_path: Path, host: str
) -> None:
    """A client that connects by address sends no server name."""
    store = tmp_path / "server.pem"
    shutil.copyfile(authority.key_store("server"), store)
    properties = {
        "listeners": "https://127.0.0.1:0",
        "listeners.https.ssl.keystore.location": str(store),
    }
    config = DISTRIBUTED.validate(properties)
    settings = rest_settings({value.name: value.value for value in config}, properties, {})
    herder.set_response(200, [])
    trusting = ssl.create_default_context(cafile=authority.ca_certificate)
    options = RestOptions(tls=settings.options.tls, access_log=False)
    with running_rest_server(herder, options, listener="https://127.0.0.1:0") as server:
        port = int(server.address.rpartition(":")[2])
        before = RestClient(server.address, trusting)
        assert before.request("GET", "/connectors").json == []
        assert _served_name(host, port, trusting) == "server"
        renewed = tmp_path / "renewed.pem"
        shutil.copyfile(authority.key_store("alice"), renewed)
        renewed.replace(store)
        assert _served_name(host, port, trusting) == "alice"
        store.write_text("half a file", encoding="utf-8")
        assert _served_name(host, port, trusting) == "alice"
        assert before.request("GET", "/connectors").json == []  # its connection is still open
        before.close()


def _served_name(host: str, port: int, context: ssl.SSLContext) -> str:
    """The common name of the certificate that the server shows."""
    with (
        socket.create_connection(("127.0.0.1", port)) as sock,
        context.wrap_socket(sock, server_hostname=host) as tls,
    ):
        certificate = tls.getpeercert(binary_form=True)
        assert certificate is not None
        (name,) = load_der_x509_certificate(certificate).subject.get_attributes_for_oid(
            NameOID.COMMON_NAME
        )
        return str(name.value)


def test_https_needs_a_key(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="ssl.keystore.location is missing"):
        server_context({})
    server = RestServer(
        ScriptedHerder(), [RestListener.parse("https://127.0.0.1:0")], RestOptions()
    )
    with pytest.raises(ConfigError, match="needs a key"):
        server.start()

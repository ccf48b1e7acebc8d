"""Listeners: parsing, binding, IPv6, TLS."""

from __future__ import annotations

import socket
import ssl
import time
from pathlib import Path

import pytest

from sparkmirror.errors import ConfigError
from sparkmirror.lab.cluster.certificates import CertificateAuthority
from sparkmirror.rest.http.listener import RestListener
from sparkmirror.rest.options import RestOptions
from sparkmirror.rest.server import RestServer
from sparkmirror.security.tls.ssl_context import server_context
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
    with running_rest_server(ScriptedHerder()) as first:
        free = socket.create_server(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        free_listener = RestListener.parse(f"http://127.0.0.1:{port}")
        server = RestServer(
            ScriptedHerder(), [free_listener, RestListener.parse(first.address)], RestOptions()
        )
        with pytest.raises(ConfigError):
            server.start()
        free_listener.bind().close()


def test_the_server_answers_within_a_second_of_its_start(herder: ScriptedHerder) -> None:
    started = time.monotonic()
    with running_rest_server(herder) as server:
        herder.set_response(200, [])
        client = RestClient(server.address)
        assert client.request("GET", "/connectors").status == 200
        assert time.monotonic() - started < 1.0
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


def test_https_needs_a_key(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="ssl.keystore.location is missing"):
        server_context({})
    server = RestServer(
        ScriptedHerder(), [RestListener.parse("https://127.0.0.1:0")], RestOptions()
    )
    with pytest.raises(ConfigError, match="needs a key"):
        server.start()

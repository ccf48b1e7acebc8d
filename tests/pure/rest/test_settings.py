"""The REST settings of a worker's config."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from sparkmirror.config.tables.distributed import DISTRIBUTED
from sparkmirror.errors import ConfigError
from sparkmirror.lab.cluster.certificates import CertificateAuthority
from sparkmirror.rest.authentication.basic_auth import EXTENSION
from sparkmirror.rest.settings import RestSettings, advertised_url, rest_settings

REQUIRED = {
    "bootstrap.servers": "127.0.0.1:9092",
    "group.id": "g",
    "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    "config.storage.topic": "c",
    "offset.storage.topic": "o",
    "status.storage.topic": "s",
}


def read(config: dict[str, str], **environment: str) -> RestSettings:
    properties = {**REQUIRED, **config}
    return rest_settings(DISTRIBUTED.parse(properties), properties, environment)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    authority = CertificateAuthority.create(tmp_path_factory.mktemp("settings") / "tls")
    authority.issue("server")
    return authority


def test_the_default_is_port_8083_on_every_interface() -> None:
    settings = read({})
    assert [str(each) for each in settings.listeners] == ["http://:8083"]
    assert settings.worker_id == f"{socket.getfqdn()}:8083"
    assert settings.options.admin_listeners is None
    assert settings.options.users is None
    assert settings.options.tls is None
    assert settings.options.response_headers.headers() == ()


@pytest.mark.parametrize(
    ("config", "worker_id"),
    [
        ({"listeners": "http://127.0.0.1:31083"}, "127.0.0.1:31083"),
        ({"listeners": "http://[::1]:8083"}, "[::1]:8083"),
        ({"listeners": "http://:1", "rest.advertised.host.name": "me"}, "me:1"),
        (
            {
                "listeners": "http://a:1",
                "rest.advertised.host.name": "me",
                "rest.advertised.port": "99",
            },
            "me:99",
        ),
    ],
)
def test_the_worker_id_is_the_advertised_address(config: dict[str, str], worker_id: str) -> None:
    assert read(config).worker_id == worker_id


def test_a_worker_on_a_free_port_has_that_port_in_its_id_and_listens_on_it() -> None:
    first, second = (read({"listeners": "http://127.0.0.1:0"}).with_ports() for _ in range(2))
    for settings in (first, second):
        [listener] = settings.listeners
        with listener.bind() as listening:
            assert settings.worker_id == f"127.0.0.1:{listening.getsockname()[1]}"
            assert advertised_url(settings.advertised, str(listener)) == str(listener)
    assert first.worker_id != second.worker_id


def test_a_given_advertised_port_stays_with_a_free_port() -> None:
    config = {"listeners": "http://127.0.0.1:0", "rest.advertised.port": "99"}
    settings = read(config).with_ports()
    settings.listeners[0].bind().close()
    assert settings.worker_id == "127.0.0.1:99"


def test_the_listener_without_tls_is_advertised_by_default(
    authority: CertificateAuthority,
) -> None:
    config = {
        "listeners": "https://a:8443,http://b:8083",
        "ssl.keystore.location": str(authority.key_store("server")),
    }
    assert str(read(config).advertised) == "http://b:8083"
    assert str(read({**config, "rest.advertised.listener": "https"}).advertised) == "https://a:8443"


def test_https_settings_have_their_prefix_or_none(
    authority: CertificateAuthority, tmp_path: Path
) -> None:
    key = str(authority.key_store("server"))
    config = {"listeners": "https://:8443"}
    assert read({**config, "ssl.keystore.location": key}).options.tls is not None
    assert read({**config, "listeners.https.ssl.keystore.location": key}).options.tls is not None
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.location is missing"):
        # One key with the prefix turns off all keys without it.
        read(
            {**config, "ssl.keystore.location": key, "listeners.https.ssl.client.auth": "required"}
        )
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.location"):
        read(config)


def test_admin_may_have_its_own_listeners_and_keystore(authority: CertificateAuthority) -> None:
    key = str(authority.key_store("server"))
    options = read(
        {
            "admin.listeners": "https://localhost:9443",
            "admin.listeners.https.ssl.keystore.location": key,
        }
    ).options
    assert [str(each) for each in options.admin_listeners or ()] == ["https://localhost:9443"]
    assert options.admin_tls is not None
    assert options.tls is None


def test_admin_may_be_switched_off() -> None:
    assert read({"admin.listeners": ""}).options.admin_listeners == ()


def test_response_headers_and_cors_origins_are_read() -> None:
    options = read(
        {
            "access.control.allow.origin": "http://example.org",
            "access.control.allow.methods": "GET,PUT",
            "response.http.headers.config": "set X-Frame-Options: DENY",
        }
    ).options
    assert (options.cors.origin, options.cors.methods) == ("http://example.org", "GET,PUT")
    assert options.response_headers.headers() == (("X-Frame-Options", "DENY"),)


def users_file(directory: Path) -> Path:
    users = directory / "users.properties"
    users.write_text("alice=s3cret\n")
    jaas = directory / "connect jaas.conf"
    module = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule"
    jaas.write_text(f'KafkaConnect {{ {module} required file="{users}"; }};')
    return jaas


@pytest.mark.parametrize("name", [EXTENSION, "BasicAuthSecurityRestExtension"])
def test_users_are_found_where_java_finds_them(name: str, tmp_path: Path) -> None:
    flag = f'-Xmx1g "-Dx=y" -Djava.security.auth.login.config="{users_file(tmp_path)}" -Da=b'
    options = read({"rest.extension.classes": name}, KAFKA_OPTS=flag).options
    assert options.users is not None
    assert options.users.authenticate("Basic YWxpY2U6czNjcmV0") == "alice"
    assert "s3cret" not in repr(options)


def test_tokens_are_read_from_the_file_of_the_setting(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("ci: a-token-of-the-ci-system\n")
    options = read({"sparkmirror.rest.bearer.tokens.file": f" {tokens} "}).options
    assert options.tokens is not None
    assert options.tokens.authenticate("Bearer a-token-of-the-ci-system") == "ci"
    assert "a-token" not in repr(options)
    assert read({"sparkmirror.rest.bearer.tokens.file": ""}).options.tokens is None


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"sparkmirror.rest.bearer.tokens.file": "/nonexistent"}, "/nonexistent"),
        ({"rest.extension.classes": EXTENSION}, "KAFKA_OPTS"),
        ({"rest.extension.classes": "com.example.Mine"}, "com.example.Mine is not supported"),
        ({"listeners": "http://a"}, "http://host:port"),
    ],
)
def test_unsupported_settings_are_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read(config)

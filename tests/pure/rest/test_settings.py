"""A worker's file, and what the REST server makes of it."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from sparkmirror.config.tables.distributed import DISTRIBUTED
from sparkmirror.errors import ConfigError
from sparkmirror.lab.cluster.certificates import CertificateAuthority
from sparkmirror.rest.http.basic_auth import EXTENSION
from sparkmirror.rest.settings import RestSettings, rest_settings

NEEDED = {
    "bootstrap.servers": "127.0.0.1:9092",
    "group.id": "g",
    "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    "config.storage.topic": "c",
    "offset.storage.topic": "o",
    "status.storage.topic": "s",
}


def read(said: dict[str, str], **environment: str) -> RestSettings:
    properties = {**NEEDED, **said}
    return rest_settings(DISTRIBUTED.parse(properties), properties, environment)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    made = CertificateAuthority.create(tmp_path_factory.mktemp("settings") / "tls")
    made.issue("server")
    return made


def test_nothing_said_means_8083_on_every_interface() -> None:
    settings = read({})
    assert [str(each) for each in settings.listeners] == ["http://:8083"]
    assert settings.worker_id == f"{socket.getfqdn()}:8083"
    assert settings.options.admin_listeners is None
    assert settings.options.users is None
    assert settings.options.tls is None
    assert settings.options.response_headers.headers() == ()


@pytest.mark.parametrize(
    ("said", "worker_id"),
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
def test_a_worker_is_named_after_what_others_should_call(
    said: dict[str, str], worker_id: str
) -> None:
    assert read(said).worker_id == worker_id


def test_others_are_told_the_listener_without_tls_unless_it_is_said(
    authority: CertificateAuthority,
) -> None:
    said = {
        "listeners": "https://a:8443,http://b:8083",
        "ssl.keystore.location": str(authority.key_store("server")),
    }
    assert str(read(said).advertised) == "http://b:8083"
    assert str(read({**said, "rest.advertised.listener": "https"}).advertised) == "https://a:8443"


def test_keys_for_https_stand_under_their_prefix_or_plain(
    authority: CertificateAuthority, tmp_path: Path
) -> None:
    key = str(authority.key_store("server"))
    said = {"listeners": "https://:8443"}
    assert read({**said, "ssl.keystore.location": key}).options.tls is not None
    assert read({**said, "listeners.https.ssl.keystore.location": key}).options.tls is not None
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.location is missing"):
        # All or nothing: one key under the prefix, and the plain ones no longer count.
        read({**said, "ssl.keystore.location": key, "listeners.https.ssl.client.auth": "required"})
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.location"):
        read(said)


def test_admin_may_have_listeners_and_keys_of_its_own(authority: CertificateAuthority) -> None:
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


def test_headers_and_origins_are_taken_over() -> None:
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


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"rest.extension.classes": EXTENSION}, "KAFKA_OPTS"),
        ({"rest.extension.classes": "com.example.Mine"}, "com.example.Mine is not known"),
        ({"listeners": "http://a"}, "http://host:port"),
    ],
)
def test_what_cannot_be_served_is_said(said: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read(said)

"""A store that cannot be used is a fault of the property that names it or its password."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sparkmirror.errors import ConfigError
from sparkmirror.lab.cluster.certificates import CertificateAuthority
from sparkmirror.security.tls.configured_stores import MAX_STORE_BYTES
from sparkmirror.security.tls.ssl_context import client_context
from tests.support.golden import GOLDEN
from tests.support.security.keytool_stores import KEY_PASSWORD, STORE_PASSWORD

STORES = GOLDEN / "stores" / "java17"
KEY, TRUST = "ssl.keystore.location", "ssl.truststore.location"
KEY_STORE_PASSWORD, TRUST_STORE_PASSWORD = "ssl.keystore.password", "ssl.truststore.password"
KEYS_PASSWORD = "ssl.key.password"
SECRET = "hunter2"


def store(name: str) -> str:
    return str(STORES / name)


def fault(properties: dict[str, str]) -> tuple[str, str]:
    """The key and the message of the only fault. It shows no password."""
    with pytest.raises(ConfigError) as error:
        client_context(properties)
    (found,) = error.value.faults
    for secret in (SECRET, STORE_PASSWORD, KEY_PASSWORD):
        assert secret not in found.message
    return found.key, found.message


@pytest.mark.parametrize("name", ["truststore.jks", "trust.jks", "trust.jceks"])
def test_a_wrong_password_of_a_trust_store(name: str) -> None:
    key, message = fault({TRUST: store(name), TRUST_STORE_PASSWORD: SECRET})
    assert key == TRUST_STORE_PASSWORD
    assert f"{TRUST_STORE_PASSWORD} does not open {store(name)}" in message


def test_a_missing_password_of_an_encrypted_trust_store() -> None:
    assert fault({TRUST: store("truststore.jks")}) == (
        TRUST_STORE_PASSWORD,
        f"{TRUST_STORE_PASSWORD} is missing: {store('truststore.jks')} is encrypted",
    )


@pytest.mark.parametrize("name", ["ec.jks", "ec.jceks", "ec.pkcs12"])
def test_a_wrong_password_of_a_key_store(name: str) -> None:
    key, _ = fault({KEY: store(name), KEY_STORE_PASSWORD: SECRET, KEYS_PASSWORD: KEY_PASSWORD})
    assert key == KEY_STORE_PASSWORD


@pytest.mark.parametrize("name", ["ec.jks", "ec.jceks", "ec.pkcs12"])
def test_a_wrong_password_of_a_key(name: str) -> None:
    properties = {KEY: store(name), KEY_STORE_PASSWORD: STORE_PASSWORD, KEYS_PASSWORD: SECRET}
    assert fault(properties) == (
        KEYS_PASSWORD,
        f"{KEYS_PASSWORD} does not open the private key me of {store(name)}",
    )


def test_a_missing_password_of_a_key_whose_store_has_another() -> None:
    key, message = fault({KEY: store("ec.jks"), KEY_STORE_PASSWORD: STORE_PASSWORD})
    assert key == KEYS_PASSWORD
    assert f"{KEY_STORE_PASSWORD} opens the store, but it does not open" in message


def test_the_password_of_a_store_opens_its_keys_too() -> None:
    client_context({KEY: store("ec.pkcs12"), KEY_STORE_PASSWORD: STORE_PASSWORD})


def test_a_key_store_that_needs_a_password_has_none() -> None:
    key, message = fault({KEY: store("ec.jks")})
    assert (key, "is missing" in message) == (KEYS_PASSWORD, True)
    assert fault({KEY: store("ec.pkcs12")})[0] == KEY_STORE_PASSWORD


def test_an_encrypted_key_in_pem_is_opened_by_the_key_password_only() -> None:
    """As in Kafka, where a PEM store has no password."""
    pem = str(GOLDEN / "stores" / "openssl" / "encrypted-pkcs8.pem")
    client_context({KEY: pem, KEYS_PASSWORD: KEY_PASSWORD})
    assert fault({KEY: pem, KEY_STORE_PASSWORD: KEY_PASSWORD})[0] == KEYS_PASSWORD
    assert "is missing" in fault({KEY: pem})[1]


def test_no_certificate_in_a_trust_store(tmp_path: Path) -> None:
    empty = tmp_path / "trust.pem"
    empty.write_text("-----BEGIN PUBLIC KEY-----\nAQID\n-----END PUBLIC KEY-----\n")
    assert fault({TRUST: str(empty)}) == (TRUST, f"{TRUST}: {empty} holds no certificate")
    inline = "ssl.truststore.certificates"
    assert fault({inline: "no pem"}) == (inline, f"{inline} holds no certificate")


def test_no_key_in_a_key_store() -> None:
    for name in ("truststore.jks", "trust.jks", "trust.jceks", "ca.pem"):
        key, message = fault({KEY: store(name), KEY_STORE_PASSWORD: STORE_PASSWORD})
        assert (key, message) == (KEY, f"{KEY}: {store(name)} holds no private key")


def test_a_key_that_does_not_fit_its_certificate(tmp_path: Path) -> None:
    authority = CertificateAuthority.create(tmp_path / "tls")
    key = authority.issue("alice").read_text().partition("-----BEGIN CERTIFICATE-----")[0]
    mixed = tmp_path / "mixed.pem"
    mixed.write_text(key + authority.ca_certificate.read_text())
    found, message = fault({KEY: str(mixed)})
    assert found == KEY
    assert "does not fit its certificate" in message


@pytest.mark.parametrize("key", [KEY, TRUST])
def test_a_file_that_cannot_be_read(key: str, tmp_path: Path) -> None:
    missing = tmp_path / "missing.jks"
    assert fault({key: str(missing)}) == (
        key,
        f"{key}: {missing} cannot be read: No such file or directory",
    )
    assert fault({key: str(tmp_path)}) == (key, f"{key}: {tmp_path} cannot be read: Is a directory")
    assert fault({key: "a\0b"})[0] == key


def test_a_file_that_is_no_store(tmp_path: Path) -> None:
    text = tmp_path / "store.jks"
    for content in (b"", b"hello", b"\x1f\x8b\x08"):
        text.write_bytes(content)
        key, message = fault({TRUST: str(text)})
        assert key == TRUST
        assert "is no JKS, JCEKS, PKCS12 or PEM store" in message
    shutil.copyfile(store("trust.jks"), text)
    with text.open("r+b") as file:
        file.truncate(30)
    assert "the store ends too early" in fault({TRUST: str(text)})[1]


def test_a_file_that_is_larger_than_any_store(tmp_path: Path) -> None:
    large = tmp_path / "store.jks"
    with large.open("wb") as file:
        file.truncate(MAX_STORE_BYTES + 1)
    assert "larger than any store" in fault({TRUST: str(large)})[1]


@pytest.mark.parametrize(
    ("properties", "key"),
    [
        ({"ssl.truststore.certificates": "x", TRUST: "y"}, "ssl.truststore.certificates"),
        ({"ssl.keystore.key": "x", KEY: "y"}, "ssl.keystore.key"),
        ({"ssl.keystore.key": "x"}, "ssl.keystore.certificate.chain"),
        ({"ssl.keystore.certificate.chain": "x"}, "ssl.keystore.key"),
        ({"ssl.enabled.protocols": "SSLv3"}, "ssl.enabled.protocols"),
        ({"ssl.engine.factory.class": "com.example.Factory"}, "ssl.engine.factory.class"),
    ],
)
def test_settings_that_contradict_each_other_or_need_java(
    properties: dict[str, str], key: str
) -> None:
    assert fault(properties)[0] == key


def test_kafkas_own_engine_factory_may_be_named() -> None:
    name = "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory"
    client_context({"ssl.engine.factory.class": name})

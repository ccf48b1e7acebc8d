"""Stores that keytool of Java 8, 17 and 21 wrote are read completely."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import load_der_private_key

from sparkmirror.security.keystore.certificate_chain import issuer_and_subject
from sparkmirror.security.keystore.entries import KeyStore, StoreType, WrongPassword
from sparkmirror.security.keystore.keystore import detect_store_type, read_store
from sparkmirror.security.keystore.private_key import key_algorithm, open_private_key
from tests.support.golden import GOLDEN
from tests.support.security.keytool_stores import (
    KEY_ALGORITHMS,
    KEY_PASSWORD,
    STORE_PASSWORD,
    STORE_TYPES,
)

STORES = GOLDEN / "stores"
JAVA = ["java8", "java17", "java21"]
ALGORITHMS = {
    "rsa": "1.2.840.113549.1.1.1",
    "ec": "1.2.840.10045.2.1",
    "dsa": "1.2.840.10040.4.1",
    "ed25519": "1.3.101.112",
}
JAVA_8_ALGORITHMS = ("rsa", "ec", "dsa")
"""Java 8 has no Ed25519."""
KEYS = [
    (java, algorithm)
    for java in JAVA
    for algorithm in (JAVA_8_ALGORITHMS if java == "java8" else KEY_ALGORITHMS)
]


def read(java: str, name: str, password: str | None = STORE_PASSWORD) -> KeyStore:
    return read_store((STORES / java / name).read_bytes(), password)


def key_password(store: KeyStore) -> str:
    return STORE_PASSWORD if store.store_type is StoreType.PKCS12 else KEY_PASSWORD


def root_certificate(java: str) -> bytes:
    return ssl.PEM_cert_to_DER_cert((STORES / java / "ca.pem").read_text("ascii"))


@pytest.mark.parametrize("store_type", STORE_TYPES)
@pytest.mark.parametrize(("java", "algorithm"), KEYS)
def test_a_key_of_each_algorithm_is_read_from_each_type_of_store(
    java: str, store_type: str, algorithm: str
) -> None:
    store = read(java, f"{algorithm}.{store_type}")
    assert store.store_type == store_type.upper()
    (entry,) = store.keys
    assert (entry.alias, len(entry.certificate_chain)) == ("me", 1)
    private_key = open_private_key(entry, key_password(store))
    assert key_algorithm(private_key) == ALGORITHMS[algorithm]
    load_der_private_key(private_key, password=None)
    with pytest.raises(WrongPassword):
        open_private_key(entry, "wrong")


@pytest.mark.parametrize("java", JAVA)
@pytest.mark.parametrize("store_type", STORE_TYPES)
def test_all_keys_of_a_store_are_read_with_their_certificates(java: str, store_type: str) -> None:
    store = read(java, f"all.{store_type}")
    algorithms = {
        entry.alias: key_algorithm(open_private_key(entry, key_password(store)))
        for entry in store.keys
    }
    expected = {f"my-{name}": ALGORITHMS[name] for in_java, name in KEYS if in_java == java}
    assert algorithms == expected
    assert len({entry.certificate_chain for entry in store.keys}) == len(expected)


@pytest.mark.parametrize("java", JAVA)
@pytest.mark.parametrize("store_type", STORE_TYPES)
def test_a_chain_is_complete_and_in_its_order(java: str, store_type: str) -> None:
    (entry,) = read(java, f"chain.{store_type}").keys
    names = [issuer_and_subject(certificate) for certificate in entry.certificate_chain]
    assert len(names) == 3
    for (issuer, _), (_, signer) in zip(names, names[1:], strict=False):
        assert issuer == signer
    assert entry.certificate_chain[-1] == root_certificate(java)


@pytest.mark.parametrize("java", JAVA)
@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("trust.jks", StoreType.JKS),
        ("trust.jceks", StoreType.JCEKS),
        ("trust-legacy.pkcs12", StoreType.PKCS12),
        ("trust-unprotected.pkcs12", StoreType.PKCS12),
        ("trust-mac-only.pkcs12", StoreType.PKCS12),
        ("ca.pem", StoreType.PEM),
    ],
)
def test_the_content_of_a_trust_store_shows_its_type(
    java: str, name: str, found: StoreType
) -> None:
    assert detect_store_type((STORES / java / name).read_bytes()) is found
    store = read(java, name)
    assert store.store_type is found
    assert store.trusted_certificates == (root_certificate(java),)


@pytest.mark.parametrize(
    ("java", "found"),
    [("java8", StoreType.JKS), ("java17", StoreType.PKCS12), ("java21", StoreType.PKCS12)],
)
def test_the_default_type_of_keytool_is_found_under_the_name_of_another(
    java: str, found: StoreType
) -> None:
    store = read(java, "truststore.jks")
    assert store.store_type is found
    assert store.trusted_certificates == (root_certificate(java),)


@pytest.mark.parametrize("java", JAVA)
def test_certificates_that_are_not_encrypted_are_read_without_a_password(java: str) -> None:
    for name in ("trust.jks", "trust.jceks", "trust-unprotected.pkcs12", "trust-mac-only.pkcs12"):
        assert read(java, name, None).trusted_certificates == (root_certificate(java),)
    encrypted = {"truststore.jks", "trust-legacy.pkcs12"} - (
        {"truststore.jks"} if java == "java8" else set()
    )
    for name in encrypted:
        with pytest.raises(WrongPassword):
            read(java, name, None)


@pytest.mark.parametrize("java", JAVA)
def test_a_wrong_store_password_is_noticed(java: str) -> None:
    for file in sorted((STORES / java).iterdir()):
        if file.name not in ("ca.pem", "trust-unprotected.pkcs12"):
            with pytest.raises(WrongPassword):
                read_store(file.read_bytes(), "wrong")


@pytest.mark.parametrize("java", JAVA)
def test_a_pkcs12_store_in_the_form_of_java_8_is_read(java: str) -> None:
    (entry,) = read(java, "rsa-legacy.pkcs12").keys
    assert key_algorithm(open_private_key(entry, STORE_PASSWORD)) == ALGORITHMS["rsa"]


@pytest.mark.parametrize("java", JAVA)
@pytest.mark.parametrize("store_type", ["jceks", "pkcs12"])
def test_a_secret_key_is_skipped(java: str, store_type: str) -> None:
    (entry,) = read(java, f"secret-key.{store_type}").keys
    assert entry.alias == "me"


@pytest.mark.parametrize("java", JAVA)
def test_a_key_with_the_default_number_of_iterations_is_read_from_jceks(java: str) -> None:
    (entry,) = read(java, "rsa-default.jceks").keys
    assert key_algorithm(open_private_key(entry, KEY_PASSWORD)) == ALGORITHMS["rsa"]


def test_a_pkcs12_key_may_have_a_password_of_its_own() -> None:
    (entry,) = read("java17", "own-key-password.pkcs12").keys
    assert key_algorithm(open_private_key(entry, KEY_PASSWORD)) == ALGORITHMS["ec"]
    with pytest.raises(WrongPassword):
        open_private_key(entry, STORE_PASSWORD)


def test_a_key_store_as_trust_store_trusts_the_certificate_of_its_key() -> None:
    store = read("java17", "chain.jks")
    assert store.trusted_certificates == store.keys[0].certificate_chain[:1]


def test_an_entry_does_not_show_its_key() -> None:
    (entry,) = read("java17", "ec.jks").keys
    assert "encoded_key" not in repr(entry)


def test_every_store_of_the_folder_is_a_known_store() -> None:
    files = [file for java in (*JAVA, "openssl") for file in _files(STORES / java)]
    assert len(files) > 50
    assert all(detect_store_type(file.read_bytes()) is not None for file in files)


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.is_file())

"""PKCS12 stores of OpenSSL, and forms of PKCS12 that keytool does not write."""

from __future__ import annotations

import ssl
from collections.abc import Callable

import pytest

from sparkmirror.security.keystore.entries import KeyStoreError, WrongPassword
from sparkmirror.security.keystore.keystore import read_store
from sparkmirror.security.keystore.pkcs12_kdf import KeyPurpose, bmp_password, derive_key
from sparkmirror.security.keystore.private_key import key_algorithm, open_private_key
from tests.support.golden import GOLDEN
from tests.support.security.keytool_stores import KEY_PASSWORD, STORE_PASSWORD

STORES = GOLDEN / "stores" / "openssl"
EC = "1.2.840.10045.2.1"


def root_certificate() -> bytes:
    return ssl.PEM_cert_to_DER_cert((STORES / "root.pem").read_text("ascii"))


def test_certificates_without_the_trust_attribute_of_java_are_trusted() -> None:
    store = read_store((STORES / "trust.p12").read_bytes(), STORE_PASSWORD)
    assert store.trusted_certificates == (root_certificate(),)


def test_an_empty_password_opens_a_store_without_a_password() -> None:
    store = read_store((STORES / "trust-empty-password.p12").read_bytes(), None)
    assert store.trusted_certificates == (root_certificate(),)


@pytest.mark.parametrize(
    "name", ["key.p12", "key-legacy.p12", "key-aes192-sha512.p12", "key-unprotected.p12"]
)
def test_a_key_with_its_chain_is_read(name: str) -> None:
    password = None if "unprotected" in name else STORE_PASSWORD
    (entry,) = read_store((STORES / name).read_bytes(), password).keys
    assert key_algorithm(open_private_key(entry, password)) == EC
    assert len(entry.certificate_chain) == 2
    assert entry.certificate_chain[1] == root_certificate()


@pytest.mark.parametrize(
    "name",
    [
        "encrypted-pkcs8",
        "encrypted-scrypt",
        "encrypted-scrypt-16",
        "encrypted-3des",
        "encrypted-traditional",
    ],
)
def test_an_encrypted_key_in_pem_is_opened_by_its_password(name: str) -> None:
    (entry,) = read_store((STORES / f"{name}.pem").read_bytes(), None).keys
    assert key_algorithm(open_private_key(entry, KEY_PASSWORD)) == EC
    for wrong in (None, "wrong"):
        with pytest.raises(WrongPassword):
            open_private_key(entry, wrong)


@pytest.mark.parametrize(
    "change",
    [
        lambda pem: pem.replace(b"08F5C4AC5E878C3A09AB87AC0B3EE70A", b"08F5C4AC5E878C3A"),
        lambda pem: pem.replace(b"AES-128-CBC", b"AES-128-CTR"),
        lambda pem: pem.replace(b"DEK-Info", b"DEK-Info: AES-128-CBC,08\nDEK-Info"),
        lambda pem: pem.replace(b"DEK-Info", b"DEX-Info"),
    ],
    ids=["short vector", "other cipher", "two ciphers", "no cipher"],
)
def test_an_encrypted_key_without_a_complete_cipher_is_damaged(
    change: Callable[[bytes], bytes],
) -> None:
    content = (STORES / "encrypted-traditional.pem").read_bytes()
    (entry,) = read_store(change(content), None).keys
    with pytest.raises(KeyStoreError):
        open_private_key(entry, KEY_PASSWORD)


def test_a_traditional_key_in_pem_needs_no_password() -> None:
    (entry,) = read_store((STORES / "traditional.pem").read_bytes(), None).keys
    assert key_algorithm(open_private_key(entry, None)) == EC


def test_indefinite_lengths_and_split_strings_of_ber_are_read() -> None:
    content = (STORES / "key-unprotected.p12").read_bytes()
    expected = read_store(content, None)
    version = content[4:7]
    safes = content[content.index(b"\xa0\x82") + 8 :]
    octets = b"".join(
        b"\x04\x82" + len(part).to_bytes(2, "big") + part for part in (safes[:500], safes[500:])
    )
    data = b"\x06\x09" + bytes.fromhex("2a864886f70d010701")
    rewritten = b"\x30\x80" + version + b"\x30\x80" + data + b"\xa0\x80\x24\x80" + octets
    rewritten += b"\x00\x00" * 4
    found = read_store(rewritten, None)
    assert found == expected
    assert found.keys[0].certificate_chain == expected.keys[0].certificate_chain


def test_keys_are_derived_as_the_standard_says() -> None:
    # An example of many implementations: password "smeg", 1 iteration, SHA-1, 24 bytes.
    salt = bytes.fromhex("0a58cf64530d823f")
    derived = derive_key("sha1", bmp_password("smeg"), salt, 1, KeyPurpose.ENCRYPTION, 24)
    assert derived.hex() == "8aaae6297b6cb04642ab5b077851284eb7128f1a2a7fbca3"
    iv = derive_key("sha1", bmp_password("smeg"), salt, 1, KeyPurpose.IV, 8)
    assert iv.hex() == "79993dfe048d3b76"


def test_a_store_that_asks_for_too_many_iterations_is_refused() -> None:
    content = (STORES / "trust.p12").read_bytes()
    iterations = b"\x02\x02\x08\x00"
    assert content.count(iterations) == 2
    hostile = content.replace(iterations, b"\x02\x02\x7f\xff")
    with pytest.raises(WrongPassword):
        read_store(hostile, STORE_PASSWORD)
    certificates = read_store(content, STORE_PASSWORD).trusted_certificates
    for number in (b"\x02\x02\x80\x00", b"\x02\x02\x00\x00"):
        with pytest.raises(KeyStoreError, match="iterations"):
            read_store(content.replace(iterations, number), STORE_PASSWORD)
    assert certificates == (root_certificate(),)

"""PEM stores: blocks in one line, in any order, with text between them."""

from __future__ import annotations

import pytest

from sparkmirror.security.keystore.entries import KeyEncoding, KeyStoreError
from sparkmirror.security.keystore.pem import read_pem

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN PRIVATE KEY-----\nBAUG\n-----END PRIVATE KEY-----\n"


@pytest.mark.parametrize("separator", ["\n", " ", "\r\n", "\t", " \n "])
def test_white_space_may_break_a_block_anywhere(separator: str) -> None:
    text = (KEY + CERTIFICATE).replace("\n", separator).replace("AQID", f"AQ{separator}ID")
    store = read_pem(text.encode())
    assert store.trusted_certificates == (b"\x01\x02\x03",)
    assert store.keys[0].encoded_key == b"\x04\x05\x06"


def test_text_between_the_blocks_is_ignored() -> None:
    text = f"Bag Attributes\n  localKeyID: 01 - 02\n{CERTIFICATE}subject=/CN=x\n{KEY}"
    store = read_pem(text.encode())
    assert len(store.trusted_certificates) == len(store.keys) == 1
    assert store.keys[0].certificate_chain == store.trusted_certificates


def test_the_kind_of_a_key_block_shows_its_encoding() -> None:
    for kind, encoding in (
        ("PRIVATE KEY", KeyEncoding.PKCS8),
        ("ENCRYPTED PRIVATE KEY", KeyEncoding.ENCRYPTED_PKCS8),
        ("RSA PRIVATE KEY", KeyEncoding.TRADITIONAL_PEM),
        ("EC PRIVATE KEY", KeyEncoding.TRADITIONAL_PEM),
    ):
        text = KEY.replace("PRIVATE KEY", kind)
        assert read_pem(text.encode()).keys[0].encoding is encoding


def test_two_keys_are_a_fault_as_in_kafka() -> None:
    with pytest.raises(KeyStoreError, match="more than one private key"):
        read_pem((KEY + KEY).encode())


def test_a_block_that_is_not_base64_is_a_fault() -> None:
    with pytest.raises(KeyStoreError, match="not base64"):
        read_pem(CERTIFICATE.replace("AQID", "A?").encode())


def test_many_open_blocks_take_no_time() -> None:
    assert read_pem(b"-----BEGIN CERTIFICATE-----\nAAAA" * 20_000).trusted_certificates == ()

"""Opens private keys of stores with their passwords."""

from __future__ import annotations

import re

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
    load_pem_private_key,
)

from sparkmirror.security.keystore.der import OCTET_STRING, read_asn1
from sparkmirror.security.keystore.entries import (
    KeyEncoding,
    KeyStoreError,
    PrivateKeyEntry,
    WrongPassword,
)
from sparkmirror.security.keystore.pbe import EncryptionAlgorithm, decrypt

_ENCRYPTED_HEADER = b"ENCRYPTED"

_CIPHER_HEADER = b"DEK-Info:"
_CIPHER = re.compile(
    rb"DEK-Info: *(?:AES-(?:128|192|256)-CBC,[0-9A-Fa-f]{32}"
    rb"|DES-(?:EDE3-)?CBC,[0-9A-Fa-f]{16})[ \t\r]*\n"
)
"""The cipher of an encrypted key, with its complete initialization vector."""


def open_private_key(entry: PrivateKeyEntry, password: str | None) -> bytes:
    """Return the key as PKCS#8, in DER, not encrypted. Raises WrongPassword or KeyStoreError."""
    if entry.encoding is KeyEncoding.TRADITIONAL_PEM:
        return _open_traditional(entry.encoded_key, password)
    if entry.encoding is KeyEncoding.PKCS8:
        return entry.encoded_key
    algorithm, encrypted = read_asn1(entry.encoded_key).sequence(at_least=2)[:2]
    plain = decrypt(
        EncryptionAlgorithm.read(algorithm),
        encrypted.expect(OCTET_STRING).content,
        password or "",
    )
    try:
        key_algorithm(plain)
    except KeyStoreError:
        raise WrongPassword("the password does not open it") from None
    return plain


def key_algorithm(private_key: bytes) -> str:
    """Return the object identifier of the algorithm of a key in PKCS#8."""
    parts = read_asn1(private_key).sequence(at_least=3)
    parts[0].integer()
    return parts[1].sequence(at_least=1)[0].object_identifier()


def encrypted_pem(private_key: bytes, password: str) -> bytes:
    """Return a key in PKCS#8 as an encrypted PEM block. Raises KeyStoreError."""
    try:
        return load_der_private_key(private_key, password=None).private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password.encode())
        )
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise KeyStoreError("the private key is damaged or of an unknown kind") from error


def _open_traditional(pem: bytes, password: str | None) -> bytes:
    is_encrypted = _ENCRYPTED_HEADER in pem
    if is_encrypted and not password:
        raise WrongPassword("the key is encrypted, and there is no password")
    if is_encrypted and (pem.count(_CIPHER_HEADER) != 1 or not _CIPHER.search(pem)):
        # With a vector that is too short, the library raises what is no Exception.
        raise KeyStoreError("the private key is damaged or of an unknown kind")
    try:
        key = load_pem_private_key(
            pem, password=(password or "").encode("utf-8") if is_encrypted else None
        )
    except (ValueError, TypeError, UnsupportedAlgorithm):
        if is_encrypted:
            raise WrongPassword("the password does not open it") from None
        raise KeyStoreError("the private key is damaged or of an unknown kind") from None
    return key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())

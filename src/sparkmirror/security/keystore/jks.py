"""Reads JKS and JCEKS stores: Java's own forms, which `keytool -storetype JKS` still writes.

    magic, version, number of entries
    entry: kind, alias, time; a private key and its chain, or a certificate, or a sealed secret key
    SHA-1 digest of the password and everything before

Without a password the entries are read and the digest is not checked, as in Java. Secret keys,
which only JCEKS has, are of no use for TLS and are skipped.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable

from sparkmirror.security.keystore.entries import (
    KeyEncoding,
    KeyStore,
    KeyStoreError,
    PrivateKeyEntry,
    StoreType,
    WrongPassword,
)
from sparkmirror.security.keystore.jceks_secret_key import skip_sealed_object
from sparkmirror.security.keystore.sun_key_protector import encode_password

JKS_MAGIC = b"\xfe\xed\xfe\xed"
JCEKS_MAGIC = b"\xce\xce\xce\xce"
_PRIVATE_KEY, _TRUSTED_CERTIFICATE, _SECRET_KEY = 1, 2, 3
_DIGEST_BYTES = 20
_DIGEST_WORDS = b"Mighty Aphrodite"


def read_jks(content: bytes, password: str | None) -> KeyStore:
    """Return the entries. Raises WrongPassword, and KeyStoreError if the store is damaged."""
    if password:
        _check_digest(content, password)
    reader = _JksReader(content[:-_DIGEST_BYTES])
    is_jceks = reader.take(4) == JCEKS_MAGIC
    version = reader.number(4)
    if version not in (1, 2):
        raise KeyStoreError(f"version {version} of its form is unknown")
    keys: list[PrivateKeyEntry] = []
    trusted: list[bytes] = []
    for _ in range(reader.number(4)):
        kind = reader.number(4)
        alias = reader.text()
        reader.take(8)  # the time of creation
        if kind == _PRIVATE_KEY:
            keys.append(_read_key(reader, alias, version))
            trusted.extend(keys[-1].certificate_chain[:1])  # Java trusts it, too
        elif kind == _TRUSTED_CERTIFICATE:
            trusted.append(reader.certificate(version))
        elif kind == _SECRET_KEY and is_jceks:
            reader.skip(skip_sealed_object)
        else:
            raise KeyStoreError(f"an entry of kind {kind} is unknown")
    return KeyStore(
        store_type=StoreType.JCEKS if is_jceks else StoreType.JKS,
        keys=tuple(keys),
        trusted_certificates=tuple(trusted),
    )


def _check_digest(content: bytes, password: str) -> None:
    signed, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
    expected = hashlib.sha1(
        encode_password(password) + _DIGEST_WORDS + signed, usedforsecurity=False
    ).digest()
    if not hmac.compare_digest(expected, digest):
        raise WrongPassword("the password is wrong, or the store is damaged")


def _read_key(reader: _JksReader, alias: str, version: int) -> PrivateKeyEntry:
    encrypted = reader.take(reader.number(4))
    chain = tuple(reader.certificate(version) for _ in range(reader.number(4)))
    return PrivateKeyEntry(
        alias=alias,
        encoded_key=encrypted,
        encoding=KeyEncoding.ENCRYPTED_PKCS8,
        certificate_chain=chain,
    )


class _JksReader:
    """Takes values from the front. Raises KeyStoreError at the end of the data."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._data):
            raise KeyStoreError("the store ends too early")
        taken = self._data[self._at : end]
        self._at = end
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def text(self) -> str:
        """A string of Java. Its form of UTF-8 differs for zero and rare characters only."""
        return self.take(self.number(2)).decode("utf-8", errors="replace")

    def certificate(self, version: int) -> bytes:
        if version == 2:
            kind = self.text()
            if kind not in ("X.509", "X509"):
                raise KeyStoreError("a certificate is not of the kind X.509")
        return self.take(self.number(4))

    def skip(self, skip_value: Callable[[bytes, int], int]) -> None:
        self._at = skip_value(self._data, self._at)

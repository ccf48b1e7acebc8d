"""Reads a store of any form. The content shows the form; the name of a file does not."""

from __future__ import annotations

from sparkmirror.security.keystore.entries import KeyStore, KeyStoreError, StoreType
from sparkmirror.security.keystore.jks import JCEKS_MAGIC, JKS_MAGIC, read_jks
from sparkmirror.security.keystore.pem import PEM_BEGIN, read_pem

_SEQUENCE = b"\x30"


def detect_store_type(content: bytes) -> StoreType | None:
    """Return the form of a store; None if it has none of the known forms."""
    if content.startswith(JKS_MAGIC):
        return StoreType.JKS
    if content.startswith(JCEKS_MAGIC):
        return StoreType.JCEKS
    if PEM_BEGIN in content:
        return StoreType.PEM
    return StoreType.PKCS12 if content.startswith(_SEQUENCE) else None


def read_store(content: bytes, password: str | None) -> KeyStore:
    """Return the entries of a store. Private keys stay encrypted; PEM needs no password.

    Raises WrongPassword, and KeyStoreError if the store is damaged or of an unknown form.
    """
    store_type = detect_store_type(content)
    if store_type is None:
        raise KeyStoreError("it is no JKS, JCEKS, PKCS12 or PEM store")
    if store_type is StoreType.PEM:
        return read_pem(content)
    if store_type is StoreType.PKCS12:
        # The library for its encryption is slow to import: clients without such a store do not.
        from sparkmirror.security.keystore.pkcs12 import read_pkcs12

        return read_pkcs12(content, password)
    return read_jks(content, password)

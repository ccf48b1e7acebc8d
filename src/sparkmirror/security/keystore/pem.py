"""Reads PEM stores, from a file or inline in a property: certificates, and at most one key.

Kafka breaks the text at any white space, so a property may hold a whole block in one line.
"""

from __future__ import annotations

import base64
import binascii
import re
import textwrap

from sparkmirror.security.keystore.entries import (
    KeyEncoding,
    KeyStore,
    KeyStoreError,
    PrivateKeyEntry,
    StoreType,
)

PEM_BEGIN = b"-----BEGIN "
_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]{1,40})-----([^-]*(?:-[^-]+)*)-----END \1-----")
_HEADER_LINE = re.compile(r"^[A-Za-z0-9-]+:.*$", re.MULTILINE)
_CERTIFICATES = ("CERTIFICATE", "X509 CERTIFICATE")
_ALIAS = "key"


def read_pem(content: bytes) -> KeyStore:
    """Return the certificates, in their order, and the key. Raises KeyStoreError."""
    text = content.decode("ascii", errors="replace")
    keys: list[tuple[bytes, KeyEncoding]] = []
    certificates: list[bytes] = []
    for kind, body in _BLOCK.findall(text):
        if kind in _CERTIFICATES:
            certificates.append(_decode(body))
        elif kind == "PRIVATE KEY":
            keys.append((_decode(body), KeyEncoding.PKCS8))
        elif kind == "ENCRYPTED PRIVATE KEY":
            keys.append((_decode(body), KeyEncoding.ENCRYPTED_PKCS8))
        elif kind.endswith(" PRIVATE KEY"):
            keys.append((_rewrap(kind, body), KeyEncoding.TRADITIONAL_PEM))
    if len(keys) > 1:
        raise KeyStoreError("it holds more than one private key")
    return KeyStore(
        store_type=StoreType.PEM,
        keys=tuple(
            PrivateKeyEntry(
                alias=_ALIAS,
                encoded_key=encoded,
                encoding=encoding,
                certificate_chain=tuple(certificates),
            )
            for encoded, encoding in keys
        ),
        trusted_certificates=tuple(certificates),
    )


def _decode(body: str) -> bytes:
    try:
        return base64.b64decode("".join(body.split()), validate=True)
    except (binascii.Error, ValueError):
        raise KeyStoreError("a PEM block holds characters that are not base64") from None


def _rewrap(kind: str, body: str) -> bytes:
    """The block in the lines that OpenSSL needs. Its headers stay."""
    headers = _HEADER_LINE.findall(body)
    lines = textwrap.wrap("".join(_HEADER_LINE.sub("", body).split()), 64)
    blank = [""] if headers else []
    return "\n".join(
        [f"-----BEGIN {kind}-----", *headers, *blank, *lines, f"-----END {kind}-----", ""]
    ).encode("ascii", errors="replace")

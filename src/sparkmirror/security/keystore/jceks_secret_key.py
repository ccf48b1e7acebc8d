"""Skips a secret key of a JCEKS store, which is a serialized Java object.

Every Java writes the same class, `SealedObjectForKeyProtector`, with four fields: two byte arrays
and two strings.
"""

from __future__ import annotations

from sparkmirror.security.keystore.entries import KeyStoreError

_HEADER = (
    b"\xac\xed\x00\x05sr\x003com.sun.crypto.provider.SealedObjectForKeyProtector"
    b"\xcdW\xcaY\xe70\xbbS\x02\x00\x00xr\x00\x19javax.crypto.SealedObject"
    b">6=\xa6\xc3\xb7Tp\x02\x00\x04[\x00\rencodedParamst\x00\x02[B"
    b"[\x00\x10encryptedContentq\x00~\x00\x02L\x00\tparamsAlgt\x00\x12Ljava/lang/String;"
    b"L\x00\x07sealAlgq\x00~\x00\x03xp"
)
_BYTE_ARRAY_CLASS = b"r\x00\x02[B\xac\xf3\x17\xf8\x06\x08T\xe0\x02\x00\x00xp"
_ARRAY, _STRING, _REFERENCE, _NULL = b"u", b"t", b"q", b"p"
_FIELDS = 4


def skip_sealed_object(data: bytes, start: int) -> int:
    """Return the position behind the object. Raises KeyStoreError if it is another object."""
    if data[start : start + len(_HEADER)] != _HEADER:
        raise KeyStoreError("a secret key has an unknown form")
    at = start + len(_HEADER)
    for _ in range(_FIELDS):
        at = _skip_value(data, at)
    return at


def _skip_value(data: bytes, at: int) -> int:
    kind, at = data[at : at + 1], at + 1
    if kind == _NULL:
        return at
    if kind == _REFERENCE:
        return at + 4
    if kind == _STRING:
        return at + 2 + int.from_bytes(data[at : at + 2], "big")
    if kind != _ARRAY:
        raise KeyStoreError("a secret key has an unknown form")
    is_first = data[at : at + len(_BYTE_ARRAY_CLASS)] == _BYTE_ARRAY_CLASS
    at += len(_BYTE_ARRAY_CLASS) if is_first else 5
    return at + 4 + int.from_bytes(data[at : at + 4], "big")

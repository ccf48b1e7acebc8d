"""How Java encrypts private keys in JKS and JCEKS stores.

JKS: the key is combined with a stream of SHA-1 digests, and a digest of password and key shows
whether the password is right. JCEKS: MD5, repeated, makes the key and the start of triple DES.
"""

from __future__ import annotations

import hashlib
import hmac

from sparkmirror.security.keystore.entries import KeyStoreError, WrongPassword

_SHA1_BYTES = 20
_SALT_BYTES = 8


def decrypt_jks_key(data: bytes, password: str) -> bytes:
    """Return the plain key of a JKS store. Raises WrongPassword."""
    if len(data) < 2 * _SHA1_BYTES:
        raise KeyStoreError("an encrypted key is too short")
    secret = encode_password(password)
    salt, encrypted, check = (
        data[:_SHA1_BYTES],
        data[_SHA1_BYTES:-_SHA1_BYTES],
        data[-_SHA1_BYTES:],
    )
    stream = bytearray()
    digest = salt
    while len(stream) < len(encrypted):
        digest = hashlib.sha1(secret + digest, usedforsecurity=False).digest()
        stream += digest
    plain = bytes(a ^ b for a, b in zip(encrypted, stream, strict=False))
    expected = hashlib.sha1(secret + plain, usedforsecurity=False).digest()
    if not hmac.compare_digest(expected, check):
        raise WrongPassword("the password does not open it")
    return plain


def derive_jceks_key(salt: bytes, iterations: int, password: str) -> tuple[bytes, bytes]:
    """Return the key and the initialization vector of triple DES for a key of a JCEKS store."""
    if len(salt) != _SALT_BYTES:
        raise KeyStoreError("the salt of an encrypted key has another length than 8")
    first, second = salt[:4], salt[4:]
    if first == second:
        first = bytes([first[3], first[0], first[1], first[3]])  # as Java does, odd as it is
    secret = bytes(ord(character) & 0x7F for character in password)
    derived = b""
    for digest in (first, second):
        for _ in range(iterations):
            digest = hashlib.md5(digest + secret, usedforsecurity=False).digest()
        derived += digest
    return derived[:24], derived[24:]


def encode_password(password: str) -> bytes:
    """Return the password as JKS stores use it: two bytes per character."""
    return password.encode("utf-16-be", errors="surrogatepass")

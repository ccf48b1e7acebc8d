"""The key derivation of PKCS#12 (RFC 7292, appendix B)."""

from __future__ import annotations

import hashlib
from enum import IntEnum


class KeyPurpose(IntEnum):
    """What a derived key is for."""

    ENCRYPTION = 1
    IV = 2
    MAC = 3


def bmp_password(password: str) -> bytes:
    """Return the password as the derivation uses it: two bytes per character, and two zeros."""
    return password.encode("utf-16-be", errors="surrogatepass") + b"\x00\x00"


def derive_key(
    hash_name: str, password: bytes, salt: bytes, iterations: int, purpose: KeyPurpose, size: int
) -> bytes:
    """Return `size` bytes. `password` is the result of `bmp_password`."""
    new_hash = getattr(hashlib, hash_name)
    block_bytes = new_hash(usedforsecurity=False).block_size
    start = bytes([purpose]) * block_bytes
    repeated = bytearray(_fill(salt, block_bytes) + _fill(password, block_bytes))
    derived = b""
    while len(derived) < size:
        digest = start + repeated
        for _ in range(iterations):
            digest = new_hash(digest, usedforsecurity=False).digest()
        derived += digest
        _add(repeated, _fill(digest, block_bytes)[:block_bytes], block_bytes)
    return derived[:size]


def _fill(text: bytes, block_bytes: int) -> bytes:
    """Repeat the text up to a multiple of the block size."""
    if not text:
        return b""
    size = -(-len(text) // block_bytes) * block_bytes
    return (text * (size // len(text) + 1))[:size]


def _add(repeated: bytearray, addend: bytes, block_bytes: int) -> None:
    """Add a number, and one, to each block."""
    number = int.from_bytes(addend, "big") + 1
    for at in range(0, len(repeated), block_bytes):
        block = int.from_bytes(repeated[at : at + block_bytes], "big") + number
        repeated[at : at + block_bytes] = (block % (1 << 8 * block_bytes)).to_bytes(
            block_bytes, "big"
        )

"""Decrypts RC2 in CBC mode (RFC 2268), in which Java 8 and OpenSSL 1 encrypt certificates.

`cryptography` has RC2 with keys of 128 bits only, and such stores have keys of 40 bits.
"""

from __future__ import annotations

import struct

BLOCK_BYTES = 8

_PI = bytes.fromhex(
    "d978f9c419ddb5ed28e9fd794aa0d89dc67e37832b76538e624c6488448bfba2"
    "179a59f587b34f1361456d8d09817d32bd8f40eb86b77b0bf09521225c6b4e82"
    "54d66593ce60b21c7356c014a78cf1dc1275ca1f3bbee4d1423dd430a33cb626"
    "6fbf0eda4669075727f21d9bbc944303f811c7f690ef3ee706c3d52fc8661ed7"
    "08e8eade8052eef784aa72ac354d6a2a961ad2715a1549744b9fd05e0418a4ec"
    "c2e0416e0f51cbcc2491af50a1f47039997c3a8523b8b47afc02365b25559731"
    "2d5dfa98e38a92ae05df2910676cbac9d300e6cfe19ea82c6316013f58e289a9"
    "0d38341bab33ffb0bb480c5fb9b1cd2ec5f3db47e5a59c770aa62068fe7fc1ad"
)
_SHIFTS = (1, 2, 3, 5)


def decrypt_rc2_cbc(key: bytes, iv: bytes, data: bytes) -> bytes:
    """Return the plain text, with its padding. The key's length is its effective length, too."""
    assert len(data) % BLOCK_BYTES == 0 and len(iv) == BLOCK_BYTES
    round_keys = _expand_key(key)
    plain = bytearray()
    previous = iv
    for at in range(0, len(data), BLOCK_BYTES):
        block = data[at : at + BLOCK_BYTES]
        decrypted = _decrypt_block(round_keys, block)
        plain += bytes(a ^ b for a, b in zip(decrypted, previous, strict=True))
        previous = block
    return bytes(plain)


def _expand_key(key: bytes) -> tuple[int, ...]:
    expanded = bytearray(key)
    size = len(key)
    for at in range(size, 128):
        expanded.append(_PI[expanded[at - 1] + expanded[at - size] & 0xFF])
    expanded[128 - size] = _PI[expanded[128 - size]]
    for at in range(127 - size, -1, -1):
        expanded[at] = _PI[expanded[at + 1] ^ expanded[at + size]]
    return struct.unpack("<64H", expanded)


def _decrypt_block(keys: tuple[int, ...], block: bytes) -> bytes:
    words = list(struct.unpack("<4H", block))
    for turn in range(15, -1, -1):
        if turn in (4, 10):
            for i in (3, 2, 1, 0):
                words[i] = words[i] - keys[words[i - 1] & 63] & 0xFFFF
        for i in (3, 2, 1, 0):
            shift = _SHIFTS[i]
            word = (words[i] >> shift | words[i] << 16 - shift) & 0xFFFF
            mixed = words[i - 1] & words[i - 2] | ~words[i - 1] & words[i - 3]
            words[i] = word - keys[4 * turn + i] - mixed & 0xFFFF
    return struct.pack("<4H", *words)

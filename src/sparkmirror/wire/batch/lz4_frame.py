"""The header of an LZ4 frame, and the mistake that clients of magic 0 made in it.

    magic (4) | FLG | BD | content size (8, by FLG) | dictionary id (4, by FLG) | checksum (1)

The checksum is the second byte of the xxHash-32 of FLG up to the checksum. Old clients hashed the
magic too, so no standard reader takes their frames before the byte is put right. Knows nothing of
what the frame holds.
"""

from __future__ import annotations

from sparkmirror.errors import BatchError
from sparkmirror.wire.batch.header import BytesLike

_FLG = 4
_MIN_HEADER_BYTES = 7
_HAS_CONTENT_SIZE = 0x08
_HAS_DICTIONARY = 0x01

_PRIME_1, _PRIME_2, _PRIME_3 = 2_654_435_761, 2_246_822_519, 3_266_489_917
_PRIME_4, _PRIME_5 = 668_265_263, 374_761_393
_WORD = 0xFFFF_FFFF


def fix_header_checksum(frame: BytesLike) -> bytes:
    """Copy a frame with the header checksum that it should have."""
    if len(frame) < _MIN_HEADER_BYTES:
        raise BatchError(
            f"an lz4 frame of {len(frame)} bytes has no room for its header; stop copying the"
            " partition and check it at the source"
        )
    flags = frame[_FLG]
    checksum_at = (
        6 + (8 if flags & _HAS_CONTENT_SIZE else 0) + (4 if flags & _HAS_DICTIONARY else 0)
    )
    right = bytearray(frame)
    right[checksum_at : checksum_at + 1] = bytes((xxh32(right[_FLG:checksum_at]) >> 8 & 0xFF,))
    return bytes(right)


def xxh32(data: BytesLike) -> int:
    """Hash fewer than 16 bytes with xxHash-32, seed 0: all that a frame's header needs."""
    if len(data) >= 16:
        raise ValueError("only short inputs are hashed here")
    value = _PRIME_5 + len(data)
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        value = value + int.from_bytes(data[at : at + 4], "little") * _PRIME_3
        value = _rotate_left(value, 17) * _PRIME_4
    for byte in data[whole:]:
        value = _rotate_left(value + byte * _PRIME_5, 11) * _PRIME_1
    value &= _WORD
    value = (value ^ value >> 15) * _PRIME_2 & _WORD
    value = (value ^ value >> 13) * _PRIME_3 & _WORD
    return value ^ value >> 16


def _rotate_left(value: int, bits: int) -> int:
    value &= _WORD
    return (value << bits | value >> 32 - bits) & _WORD

"""Zig-zag varints, as records of magic 2 hold their lengths and deltas.

Small numbers of either sign take few bytes: 0, -1, 1, -2 become 0, 1, 2, 3, with seven bits per
byte, low bits first. The high bit means that another byte follows.
"""

from __future__ import annotations

from typing import Final

from sparkmirror.wire.batch.header import BytesLike

MAX_VARINT_BYTES: Final = 10
"""The longest varint: 64 bits, seven per byte."""


def encode(number: int) -> bytes:
    """Encode a signed 64-bit number."""
    rest = (number << 1) ^ (number >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def decode(data: BytesLike, at: int) -> tuple[int, int]:
    """Return the number at an index and the index after it. Raises ValueError."""
    raw = shift = 0
    for index in range(at, min(at + MAX_VARINT_BYTES, len(data))):
        byte = data[index]
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            if raw >> 64:
                break
            return (raw >> 1) ^ -(raw & 1), index + 1
        shift += 7
    raise ValueError(f"a number that does not end or is too large, {at} bytes into its records")


SMALL_VARINTS: Final[tuple[bytes, ...]] = (
    *(bytes((number << 1,)) for number in range(1 << 6)),
    *(bytes((number << 1 & 0x7F | 0x80, number >> 6)) for number in range(1 << 6, 1 << 13)),
)
"""0, 1, 2, ... as varints of one or two bytes: the offset deltas of nearly every batch."""


def encode_non_negative(number: int) -> bytes:
    """Encode a number that is not negative, from the table if it is small."""
    return SMALL_VARINTS[number] if number < len(SMALL_VARINTS) else encode(number)

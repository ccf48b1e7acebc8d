"""The order in which Java's HashMap lists its keys. It decides which of two equal names wins."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

_MIN_CAPACITY: Final = 16


def hash_map_order(names: Iterable[str]) -> list[str]:
    """The names in the order in which a HashMap that grew with them lists them."""
    listed = list(names)
    capacity = _MIN_CAPACITY
    while len(listed) > capacity * 3 // 4:
        capacity *= 2
    return sorted(listed, key=lambda name: _spread(_hash_code(name)) & (capacity - 1))


def _hash_code(text: str) -> int:
    code = 0
    for (unit,) in struct.iter_unpack(">H", text.encode("utf-16-be", "surrogatepass")):
        code = (31 * code + unit) & 0xFFFFFFFF
    return code


def _spread(code: int) -> int:
    return code ^ (code >> 16)

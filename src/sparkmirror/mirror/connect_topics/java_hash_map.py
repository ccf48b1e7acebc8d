"""The iteration order of Java's HashMap.

Kafka Connect finds a stored offset by the *bytes* of its key, a JSON object whose members are in
the order of a HashMap. So the order is part of the format.

    hash(key)  = 31 * hash + code unit, over the UTF-16 code units, in 32 bits
    bucket     = (hash xor hash >>> 16) and (table - 1)
    order      = by bucket; inside a bucket as inserted
    table      = 16, doubled whenever more than three quarters full (13 keys: 32, 25 keys: 64)

Doubling keeps the order inside a bucket, so only the final size of the table matters. In a table of
64 or more, Java turns a bucket of more than eight keys into a tree, whose root comes first. The
maps in these topics are smaller than that.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TypeVar

Value = TypeVar("Value")

_SMALLEST_TABLE = 16


@lru_cache(maxsize=1024)  # the members of offsets and statuses are few
def string_hash(text: str) -> int:
    """Return `String.hashCode()`, as an unsigned number."""
    units = text.encode("utf-16-be", errors="surrogatepass")
    result = 0
    for at in range(0, len(units), 2):
        result = (31 * result + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    return result


def in_hash_map_order(members: Mapping[str, Value]) -> dict[str, Value]:
    """Return the members in the iteration order of a Java HashMap."""
    return {key: members[key] for key in _ordered_keys(tuple(members))}


@lru_cache(maxsize=256)  # most maps have the same keys as one before
def _ordered_keys(keys: tuple[str, ...]) -> tuple[str, ...]:
    table = _SMALLEST_TABLE
    while len(keys) > table * 3 // 4:
        table *= 2
    mask = table - 1

    def bucket(key: str) -> int:
        spread = string_hash(key)
        return (spread ^ spread >> 16) & mask

    return tuple(sorted(keys, key=bucket))

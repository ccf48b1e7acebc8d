"""Which keys of a store a client or a server shows: those that Java's key manager would choose.

Java asks for one key algorithm after the other, in the order of the other side, and takes the
first entry of a hash map that fits. Here a context holds one key per algorithm, and OpenSSL
chooses by what the other side accepts. Java also looks at the authorities that the other side
names, which Python does not show: keep one key per algorithm in a store, and the choice is sure.
"""

from __future__ import annotations

from collections.abc import Sequence

from sparkmirror.security.keystore.entries import PrivateKeyEntry

_FIRST_CAPACITY = 16


def in_java_order(entries: Sequence[PrivateKeyEntry]) -> list[PrivateKeyEntry]:
    """Return the entries in the order of a `java.util.HashMap` with their aliases as keys."""
    capacity = _FIRST_CAPACITY
    while len(entries) > capacity * 3 // 4:
        capacity *= 2
    return sorted(entries, key=lambda entry: _spread_hash(entry.alias) & (capacity - 1))


def _spread_hash(text: str) -> int:
    """`String.hashCode`, combined with its upper half as `HashMap` does."""
    value = 0
    encoded = text.encode("utf-16-be", errors="surrogatepass")
    for at in range(0, len(encoded), 2):
        value = (31 * value + int.from_bytes(encoded[at : at + 2], "big")) & 0xFFFFFFFF
    return value ^ value >> 16

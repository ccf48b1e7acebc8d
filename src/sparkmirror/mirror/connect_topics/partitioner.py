"""The partition of a keyed record, as Kafka's default partitioner computes it.

In a compacted topic all records of one key must be in one partition, whichever program wrote them.
"""

from __future__ import annotations

_MULTIPLIER = 0x5BD1E995
_SEED = 0x9747B28C
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Return the 32-bit murmur2 hash of `data` with Kafka's seed, as an unsigned number."""
    length = len(data)
    result = (_SEED ^ length) & _MASK
    whole = length & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * _MULTIPLIER & _MASK
        word = (word ^ word >> 24) * _MULTIPLIER & _MASK
        result = result * _MULTIPLIER & _MASK ^ word
    if whole < length:
        result = (result ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _MASK
    result = (result ^ result >> 13) * _MULTIPLIER & _MASK
    return result ^ result >> 15


def partition_for(key: bytes, partitions: int) -> int:
    """Return the partition for `key` in a topic with this number of partitions."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


class KeyPartitions:
    """The partitions of keys in one topic: computed once for each key and number of partitions.

    Keeps every key. It is for keys whose number does not grow without end.
    """

    def __init__(self) -> None:
        self._partitions = 0
        self._by_key: dict[bytes, int] = {}

    def partition_for(self, key: bytes, partitions: int) -> int:
        """Return the partition for `key` in a topic with this number of partitions."""
        if partitions != self._partitions:
            self._partitions = partitions
            self._by_key.clear()
        found = self._by_key.get(key)
        if found is None:
            found = self._by_key[key] = partition_for(key, partitions)
        return found

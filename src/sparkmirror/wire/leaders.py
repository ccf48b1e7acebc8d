"""Who leads a partition and where brokers are, as answers of several kinds say it."""

from __future__ import annotations

import struct
from typing import NamedTuple

from sparkmirror.wire.fields import INT32, read_compact_count, read_compact_string, read_tags
from sparkmirror.wire.place import Address

NOBODY = -1
NO_EPOCH = -1

_LEADER = struct.Struct(">ii")


class Leader(NamedTuple):
    """Which broker leads a partition, and since which election. A higher epoch is newer."""

    node_id: int
    epoch: int


class Broker(NamedTuple):
    """One broker: its number, its address for us, its rack."""

    node_id: int
    host: str
    port: int
    rack: str | None = None

    @property
    def address(self) -> Address:
        """Where to connect to."""
        return Address(self.host, self.port)


def read_leader(tag: memoryview | None) -> Leader | None:
    """Read the tag by which a broker that no longer leads names its successor (KIP-951)."""
    if tag is None:
        return None
    leader = Leader(*_LEADER.unpack_from(tag, 0))
    return None if leader.node_id == NOBODY else leader


def read_endpoints(tag: memoryview | None) -> tuple[Broker, ...]:
    """Read the tag that says where the leaders named in an answer are (KIP-951)."""
    if tag is None:
        return ()
    brokers = []
    count, at = read_compact_count(tag, 0)
    for _ in range(count):
        (node_id,) = INT32.unpack_from(tag, at)
        host, at = read_compact_string(tag, at + INT32.size)
        (port,) = INT32.unpack_from(tag, at)
        rack, at = read_compact_string(tag, at + INT32.size)
        _, at = read_tags(tag, at)
        brokers.append(Broker(node_id, host or "", port, rack))
    return tuple(brokers)

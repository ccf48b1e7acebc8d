"""Leaders of partitions and addresses of brokers, in responses of several APIs."""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from sparkmirror.wire.net.address import Address
from sparkmirror.wire.protocol.primitive_types import (
    INT32,
    read_compact_array_length,
    read_compact_string,
    read_tagged_fields,
)

NO_NODE_ID: Final = -1
NO_LEADER_EPOCH: Final = -1

_NODE_ID_AND_EPOCH: Final = struct.Struct(">ii")


class LeaderAndEpoch(NamedTuple):
    """The leader of a partition and its epoch. A higher epoch is newer."""

    node_id: int
    epoch: int


class BrokerNode(NamedTuple):
    """One broker: its id, its address on this listener, its rack."""

    node_id: int
    host: str
    port: int
    rack: str | None = None

    @property
    def address(self) -> Address:
        """The address to connect to."""
        return Address(self.host, self.port)


def read_current_leader(tag: memoryview | None) -> LeaderAndEpoch | None:
    """Read the tag with which a former leader names the new one (KIP-951)."""
    if tag is None:
        return None
    leader = LeaderAndEpoch(*_NODE_ID_AND_EPOCH.unpack_from(tag, 0))
    return None if leader.node_id == NO_NODE_ID else leader


def read_node_endpoints(tag: memoryview | None) -> tuple[BrokerNode, ...]:
    """Read the tag with the addresses of the leaders named in a response (KIP-951)."""
    if tag is None:
        return ()
    brokers = []
    count, at = read_compact_array_length(tag, 0)
    for _ in range(count):
        (node_id,) = INT32.unpack_from(tag, at)
        host, at = read_compact_string(tag, at + INT32.size)
        (port,) = INT32.unpack_from(tag, at)
        rack, at = read_compact_string(tag, at + INT32.size)
        _, at = read_tagged_fields(tag, at)
        brokers.append(BrokerNode(node_id, host or "", port, rack))
    return tuple(brokers)

"""One fetch for many partitions of a topic, answered with bytes of our own.

The answers of the wire room are views into memory that is used again; stores are small, so here
they are copied out while the answer is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sparkmirror.wire.buffers import Frame
from sparkmirror.wire.codes import Code
from sparkmirror.wire.connection import Connection
from sparkmirror.wire.fetch import FetchLimits, Position, fetch_request, fetch_version
from sparkmirror.wire.request import Request

PARTITION_BYTES = 1 << 20
ANSWER_BYTES = 8 << 20


class Piece(NamedTuple):
    """What a broker answered for one partition."""

    partition: int
    code: Code
    records: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """What a broker answered. `throttle_time_ms` is read by the connection."""

    throttle_time_ms: int
    code: Code
    pieces: tuple[Piece, ...]


def ask(
    topic: str, offsets: Mapping[int, int], wait_ms: int, connection: Connection
) -> Request[Pieces]:
    """Ask for what lies at these offsets; the broker waits a while if there is nothing."""
    fetch = fetch_request(
        fetch_version(connection.versions, by_id=False),
        FetchLimits(max_wait_ms=wait_ms, max_bytes=ANSWER_BYTES),
        [Position(topic, number, at, PARTITION_BYTES) for number, at in offsets.items()],
    )

    def decode(frame: Frame, at: int) -> Pieces:
        answer = fetch.decode(frame, at)
        return Pieces(
            throttle_time_ms=answer.throttle_time_ms,
            code=Code(answer.error),
            pieces=tuple(
                Piece(found.partition, Code(found.error), bytes(found.records))
                for found in answer.partitions
            ),
        )

    return Request(
        name=fetch.name,
        api_key=fetch.api_key,
        version=fetch.version,
        flexible=fetch.flexible,
        body=fetch.body,
        decode=decode,
    )

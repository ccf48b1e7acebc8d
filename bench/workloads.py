"""Workloads: record size, compression and batch size of a source topic. Pure."""

from __future__ import annotations

import json
import random
import time
from dataclasses import dataclass

from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.header import HEADER_BYTES
from sparkmirror.wire.batch.records import Record, build_batch

KEY_BYTES = 12
_RECORD_OVERHEAD = 10
"""The bytes of lengths, deltas and attributes of one record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The content of a topic. `batch_bytes` is the size of a batch before compression."""

    name: str
    title: str
    value_bytes: int
    batch_bytes: int
    records: int
    """The number of records in all partitions together."""
    codec: CompressionType = CompressionType.NONE

    @property
    def records_per_batch(self) -> int:
        """The number of records in one batch."""
        record_bytes = KEY_BYTES + self.value_bytes + _RECORD_OVERHEAD
        return max(1, (self.batch_bytes - HEADER_BYTES) // record_bytes)

    def batches_per_partition(self, partitions: int) -> int:
        """Return the number of batches in each partition, rounded up."""
        return -(-self.records // (self.records_per_batch * partitions))

    def total(self, partitions: int) -> int:
        """Return the number of records in the topic, which holds complete batches only."""
        return self.batches_per_partition(partitions) * self.records_per_batch * partitions

    def batch(self, seed: int) -> bytes:
        """Return a batch as a producer would send it."""
        rng, now = random.Random(seed), time.time_ns() // 1_000_000
        return build_batch(
            [
                Record(n, now, b"key-%08d" % rng.randrange(10**8), _value(rng, self.value_bytes))
                for n in range(self.records_per_batch)
            ],
            self.codec,
        )


def _value(rng: random.Random, size: int) -> bytes:
    """Return `size` bytes of a JSON event, which compress as well as real events."""
    event = {
        "id": rng.randrange(10**9),
        "user": f"user-{rng.randrange(5000)}",
        "state": rng.choice(("created", "paid", "packed", "shipped", "returned")),
        "amount": rng.randrange(10**5) / 100,
    }
    text = json.dumps(event, separators=(",", ":"))
    while len(text) < size:
        text += f',"{rng.randrange(10**6):06}":"{rng.choice(_WORDS)}"'
    return text[:size].encode()


_WORDS = ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "kilo")

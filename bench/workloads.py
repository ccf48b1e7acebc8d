"""Workloads: record size, headers, compression and batch size of a source topic. Pure."""

from __future__ import annotations

import json
import random
import time
from dataclasses import dataclass

from bench.record_headers import MAX_BYTES, headers_of, is_kept
from bench.transform_chain import MASKED_FIELD, TransformChain
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.header import HEADER_BYTES
from sparkmirror.wire.batch.records import Record, build_batch

KEY_BYTES = 12
_RECORD_OVERHEAD = 10
"""The bytes of lengths, deltas and attributes of one record."""
_VARIANTS = 4
_RECORDS_WITH_HEADERS = 8192
"""So many records have different headers: a task that remembers some of them gains nothing."""


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
    header_share: int | None = None
    """The per cent of records that have the dropped header; None if records have no headers."""
    complete_json: bool = False
    """Whether values are valid JSON."""
    chain: TransformChain | None = None
    """The transforms of the flow that copies the topic; None for a flow that cannot have any."""

    @property
    def records_per_batch(self) -> int:
        """The number of records in one batch."""
        record_bytes = KEY_BYTES + self.value_bytes + _RECORD_OVERHEAD
        record_bytes += 0 if self.header_share is None else MAX_BYTES
        return max(1, (self.batch_bytes - HEADER_BYTES) // record_bytes)

    @property
    def variants(self) -> int:
        """The number of different batches, which are written in turn."""
        if self.header_share is None:
            return _VARIANTS
        return -(-_RECORDS_WITH_HEADERS // self.records_per_batch)

    def batches_per_partition(self, partitions: int) -> int:
        """Return the number of batches in each partition, rounded up."""
        return -(-self.records // (self.records_per_batch * partitions))

    def total(self, partitions: int) -> int:
        """Return the number of records in the topic, which holds complete batches only."""
        return self.batches_per_partition(partitions) * self.records_per_batch * partitions

    def kept_total(self, partitions: int) -> int:
        """Return the number of records that the chain does not leave out of the topic."""
        share = self.header_share
        if share is None or self.chain is None or not self.chain.properties:
            return self.total(partitions)
        kept = [
            sum(is_kept(number, share) for number in self._numbers(seed))
            for seed in range(self.variants)
        ]
        batches = self.batches_per_partition(partitions)
        return sum(kept[number % self.variants] for number in range(batches)) * partitions

    def batch(self, seed: int) -> bytes:
        """Return a batch as a producer would send it; `seed` is the number of the variant."""
        rng, now = random.Random(seed), time.time_ns() // 1_000_000
        value_of = _complete_value if self.complete_json else _value
        share = self.header_share
        return build_batch(
            [
                Record(
                    offset,
                    now,
                    b"key-%08d" % rng.randrange(10**8),
                    value_of(rng, self.value_bytes),
                    () if share is None else headers_of(number, share),
                )
                for offset, number in enumerate(self._numbers(seed))
            ],
            self.codec,
        )

    def _numbers(self, seed: int) -> range:
        """Return the numbers of the records of a variant, from which they have their headers."""
        return range(seed * self.records_per_batch, (seed + 1) * self.records_per_batch)


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


def _complete_value(rng: random.Random, size: int) -> bytes:
    """Return a JSON object of `size` bytes with fields like those of `_value`."""
    event: dict[str, object] = {
        "id": rng.randrange(10**9),
        "user": f"user-{rng.randrange(5000)}",
        MASKED_FIELD: f"{rng.randrange(10**9):09}",
        "amount": rng.randrange(10**5) / 100,
        "text": "",
    }
    text = json.dumps(event, separators=(",", ":"))
    while len(text) < size - _FIELD_BYTES:
        event[f"{rng.randrange(10**6):06}"] = rng.choice(_WORDS)
        text = json.dumps(event, separators=(",", ":"))
    event["text"] = "." * (size - len(text))
    return json.dumps(event, separators=(",", ":")).encode()


_FIELD_BYTES = 20
"""A further field with one of these words has at most so many bytes."""
_WORDS = ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "kilo")

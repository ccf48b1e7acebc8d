"""What a record batch costs in each lane, next to reading its records with kafka-python.

kafka-python only reads, and always an uncompressed batch; reopening inflates, rewrites, compresses
and seals. With a codec nearly all of that is the codec.

Ratios are of the same process and the same minute, so they mean something on any machine; the
absolute figures are those of the machine at hand.

    python -m bench micro batches
"""

from __future__ import annotations

import random
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, cast

from sparkmirror.wire.batch.checksum import assemble_batch, verify_crc
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.header import HEADER_BYTES, LOG_APPEND_TIME, BytesLike, read_header
from sparkmirror.wire.batch.lanes.forward import BatchProducer, forward_batch
from sparkmirror.wire.batch.lanes.forward_or_reopen import choose_lane
from sparkmirror.wire.batch.lanes.reopen import reopen_batch
from sparkmirror.wire.batch.records import Record, build_batch
from sparkmirror.wire.batch.target_limits import TargetLimits

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record.default_records import DefaultRecordBatch

_kafka_python = cast("Callable[[BytesLike], Any]", DefaultRecordBatch)
TARGET = TargetLimits(max_message_bytes=1 << 30)
PRODUCER = BatchProducer(producer_id=1, epoch=0)
RECORDS = 1000
VALUE_BYTES = (100, 1000)
CODECS = (CompressionType.NONE, CompressionType.LZ4, CompressionType.ZSTD)


def seconds(work: Callable[[], object], calls: int) -> float:
    """CPU seconds per call, the best of seven rounds: a busy machine changes little."""
    best = float("inf")
    for _ in range(7):
        begun = time.thread_time()
        for _ in range(calls):
            work()
        best = min(best, time.thread_time() - begun)
    return best / calls


def batch_of(
    value_bytes: int, codec: CompressionType = CompressionType.NONE, step: int = 1
) -> bytes:
    """Build a batch of plausible records; with a step, one that compaction has thinned out."""
    rng = random.Random(value_bytes)
    words = [b"%d" % rng.randrange(10**9) for _ in range(500)]
    records = [
        Record(
            offset=number * step,
            timestamp=1_700_000_000_000 + number * 3,
            key=b"key-%08d" % number,
            value=b" ".join(rng.choices(words, k=value_bytes // 9))[:value_bytes],
        )
        for number in range(RECORDS)
    ]
    return build_batch(records, codec)


def with_log_append_time(batch: bytes) -> bytes:
    """The same batch from a topic that stamps what it stores."""
    header = read_header(batch)
    return assemble_batch(
        header._replace(attributes=header.attributes | LOG_APPEND_TIME), batch[HEADER_BYTES:]
    )


def iterate(batch: BytesLike) -> None:
    """Read every record as kafka-python's consumer does."""
    for _ in _kafka_python(batch):
        pass


def patch(batch: memoryview) -> None:
    """All that the forward lane does with a batch, but for its checksum and the sockets."""
    header = read_header(batch)
    choose_lane(header, 0, False, TARGET)
    forward_batch(header, batch, PRODUCER, 0)


def run_reopen_lane(batch: BytesLike, position: int = 0) -> None:
    """Run a batch through the reopen lane."""
    for _ in reopen_batch(read_header(batch), batch, position, TARGET):
        pass


def show_forward(value_bytes: int) -> None:
    """Print the cost of forwarding a batch, and of verifying it."""
    batch = memoryview(batch_of(value_bytes))
    patching = seconds(partial(patch, batch), 2000)
    checking = seconds(partial(verify_crc, read_header(batch), batch), 100)
    reading = seconds(partial(iterate, batch), 1)
    print(
        f"forward  {RECORDS} x {value_bytes:>4} B, {len(batch) / 1e6:.2f} MB:"
        f" {patching * 1e9:5.0f} ns per batch, verify {len(batch) / checking / 1e9:4.1f} GB/s;"
        f" both together {reading / (patching + checking):4.0f} times faster than kafka-python"
        f" iterates ({reading / RECORDS * 1e6:.2f} us per record)"
    )


def show_reopen(value_bytes: int) -> None:
    """Print the cost of reopening per record, by codec, and how much faster it is than reading."""
    reading = seconds(partial(iterate, batch_of(value_bytes)), 1)
    for codec in CODECS:
        whole = batch_of(value_bytes, codec)
        work = {
            "compacted": partial(run_reopen_lane, batch_of(value_bytes, codec, step=3)),
            "head cut": partial(run_reopen_lane, whole, RECORDS // 10),
            "retimed": partial(run_reopen_lane, with_log_append_time(whole)),
        }
        costs = {name: seconds(task, 3) for name, task in work.items()}
        shown = ", ".join(
            f"{name} {cost / RECORDS * 1e6:5.2f} us ({reading / cost:4.1f} x)"
            for name, cost in costs.items()
        )
        print(f"reopen   {value_bytes:>4} B {codec.config_name:<4} per record: {shown}")


def main() -> None:
    """Print the table."""
    for value_bytes in VALUE_BYTES:
        show_forward(value_bytes)
    for value_bytes in VALUE_BYTES:
        show_reopen(value_bytes)


if __name__ == "__main__":
    main()

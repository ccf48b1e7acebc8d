"""What transformations cost a task for each record, without sockets, next to copying unchanged.

python -m bench micro transforms
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sparkmirror.copy.lease import Lease, LeaseIdentity
from sparkmirror.copy.settings import CopySettings
from sparkmirror.copy.task.produce.partition_queue import PartitionQueue
from sparkmirror.copy.task.transform.converter_factory import ConverterFactory
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.records import Record, build_batch
from sparkmirror.wire.batch.target_limits import TargetLimits
from sparkmirror.wire.net.buffer_pool import BufferPool

_CLASSES = "org.apache.kafka.connect.transforms"
HEADERS = {
    "transforms": "drop,strip",
    "transforms.drop.type": f"{_CLASSES}.Filter",
    "transforms.drop.predicate": "marked",
    "predicates": "marked",
    "predicates.marked.type": f"{_CLASSES}.predicates.HasHeaderKey",
    "predicates.marked.name": "drop",
    "transforms.strip.type": f"{_CLASSES}.DropHeaders",
    "transforms.strip.headers": "pii",
}
MASK = {
    "transforms": "mask",
    "transforms.mask.type": f"{_CLASSES}.MaskField$Value",
    "transforms.mask.fields": "price",
    "sparkmirror.transform.value.format": "json",
}
BATCHES = 8
"""Batches in one fetched response."""
RECORDS = 128
"""Records of 1 KB in each of them."""
SHARES = (0, 10, 100)
"""Per cent of the records that have the header."""
NOW_MS = 1_800_000_000_000


def response(share: int, codec: CompressionType = CompressionType.NONE) -> bytes:
    """A fetched response; so many per cent of the records have the headers `pii` and `trace`."""
    value = b'{"id":12345678,"price":12.5,"text":"%s"}' % (b"word " * 190)
    batches = []
    for batch in range(BATCHES):
        records: list[Record] = []
        for number in range(batch * RECORDS, (batch + 1) * RECORDS):
            headers: tuple[tuple[bytes, bytes | None], ...] = ((b"trace", b"%016x" % number),)
            if number % 100 < share:
                headers = ((b"pii", b"x"), *headers)
            records.append(Record(number, NOW_MS + number, b"key-%08d" % number, value, headers))
        batches.append(build_batch(records, codec))
    return b"".join(batches)


def converting(
    data: bytes, transforms: Mapping[str, str], *, uses_header_lane: bool = True
) -> Callable[[], None]:
    """Work that converts a response."""
    identity = LeaseIdentity(producer_id=7, producer_epoch=1, anchor=0)
    source, target = TopicPartition("t", 0), TopicPartition("A.t", 0)
    factory = ConverterFactory.for_settings(CopySettings(transforms=transforms))
    lease = Lease(
        source=source,
        target=target,
        position=0,
        expected=0,
        identity=identity,
        chain=factory.chain,
    )
    converter = replace(factory, uses_header_lane=uses_header_lane).new_converter(
        lease, TargetLimits(), {}
    )
    frame = BufferPool().allocate(len(data))
    frame.view[:] = data

    def convert() -> None:
        uncopyable = converter.convert(PartitionQueue(lease), frame, frame.view, ())
        assert uncopyable is None, uncopyable

    return convert


def show(name: str, work: Sequence[tuple[str, Callable[[], None]]]) -> None:
    """Print CPU microseconds per record, the best of seven rounds."""
    shown = []
    for label, convert in work:
        best = float("inf")
        for _ in range(7):
            begun = time.thread_time()
            convert()
            best = min(best, time.thread_time() - begun)
        shown.append(f"{label} {best / BATCHES / RECORDS * 1e6:6.2f} us")
    print(f"{name:<24} {', '.join(shown)}")


def main() -> None:
    """Print the table."""
    for codec in (CompressionType.NONE, CompressionType.LZ4):
        for share in SHARES:
            data = response(share, codec)
            show(
                f"{codec.config_name}, {share} % with header",
                [
                    ("unchanged", converting(data, {})),
                    ("headers", converting(data, HEADERS)),
                    ("records", converting(data, HEADERS, uses_header_lane=False)),
                    ("MaskField", converting(data, MASK)),
                ],
            )


if __name__ == "__main__":
    main()

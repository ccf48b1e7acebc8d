"""What arrives is what was sent: every kind of record, batch and topic, compared on both sides."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import pytest

from sparkmirror.copy.snapshot import CopySnapshot
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.header import BatchHeader
from sparkmirror.wire.batch.records import Record
from tests.brokers.copy.conftest import flow_between
from tests.support.copy.copy_flow import CopyFlow, remote_topic_name
from tests.support.copy.copy_harness import HARNESS_TIMEOUT_S
from tests.support.kafka.admin_operations import set_topic_config
from tests.support.kafka.batch_writer import BatchWriter, now_ms, numbered_records
from tests.support.kafka.bulk_reader import read_partitions
from tests.support.kafka.partition_log import (
    PartitionLog,
    assert_copied,
    assert_run_map_equals,
    read_partition_log,
)
from tests.support.kafka.record_batches import JAVA_BATCHES, NOW_MS, random_record
from tests.support.waiting import wait_until

Write = Callable[[BatchWriter, TopicPartition], None]

FOREVER = str(2**63 - 1)
ANY_TIME = {
    "message.timestamp.before.max.ms": FOREVER,
    "message.timestamp.after.max.ms": FOREVER,
}
APPEND_TIME = {"message.timestamp.type": "LogAppendTime"}
LARGE = {"max.message.bytes": str(30 << 20)}
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "50",
    "min.cleanable.dirty.ratio": "0.001",
}
MANY_PARTITIONS = 1000
OPEN_FROM = 5
UNCHANGED_CHECKS = 20
"""After so many equal reads the cleaner has stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicCase:
    """One topic: how it is made and written."""

    write: Write
    partitions: int = 1
    source: Mapping[str, str] = field(default_factory=dict)
    remote: Mapping[str, str] = field(default_factory=dict)
    with_times: bool = True


def write_codec(codec: CompressionType) -> Write:
    """Batches that Java compressed, and our own."""

    def write(writer: BatchWriter, partition: TopicPartition) -> None:
        name = codec.name.lower()
        for batch in (f"v2 {name}", f"v2 {name} several blocks"):
            if batch in JAVA_BATCHES:
                writer.write_raw_batch(partition, JAVA_BATCHES[batch].buffer)
        writer.write_batch(partition, numbered_records(range(1000)), codec)
        writer.write_batch(partition, numbered_records(range(1000, 1001)), codec)

    return write


def write_shapes(writer: BatchWriter, partition: TopicPartition) -> None:
    """Null and empty keys and values; none, one, many, doubled and null headers."""
    rng = random.Random(7)
    many = tuple((b"header %d" % n, b"content %d" % n) for n in range(1000))
    shapes = [
        Record(0, NOW_MS, None, None),
        Record(0, NOW_MS, b"", b""),
        Record(0, NOW_MS, None, b"v"),
        Record(0, NOW_MS, b"k", None),
        Record(0, NOW_MS, b"k", b"v", ((b"one", b"1"),)),
        Record(0, NOW_MS, b"k", b"v", ((b"same", b"1"), (b"same", b"2"), (b"", None), (b"e", b""))),
        Record(0, NOW_MS, b"k", b"v", many),
        *(random_record(0, rng) for _ in range(300)),
    ]
    writer.write_batch(partition, shapes)
    for shape in shapes[:20]:
        writer.write_batch(partition, [shape], CompressionType.LZ4)


def write_times(writer: BatchWriter, partition: TopicPartition) -> None:
    """No time, the oldest, old ones, the future; in no order."""
    times = [
        -1,
        0,
        1,
        915_148_800_000,
        now_ms() + 600_000,
        NOW_MS,
        -1,
        now_ms(),
        4_102_444_800_000,
        0,
    ]
    writer.write_batch(partition, [Record(0, time, b"k", b"%d" % time) for time in times])
    for time in times:
        writer.write_batch(partition, [Record(0, time, b"k", b"alone")])


def write_some(writer: BatchWriter, partition: TopicPartition) -> None:
    """Three batches of times long ago and now."""
    for time in (NOW_MS, now_ms(), NOW_MS + 5):
        writer.write_batch(
            partition, numbered_records(range(20), timestamp=time), CompressionType.GZIP
        )


def write_transactions(writer: BatchWriter, partition: TopicPartition) -> None:
    """Committed and aborted transactions that overlap, with plain records in between."""
    first, second = (
        writer.begin_transaction(f"{partition}-1"),
        writer.begin_transaction(f"{partition}-2"),
    )
    writer.write_batch(partition, numbered_records(range(3)))
    first.write_batch(partition, numbered_records(range(10, 15)))
    second.write_batch(partition, [Record(0, NOW_MS, b"k", b"aborted 1")])
    writer.write_batch(partition, numbered_records(range(20, 22)))
    first.commit()
    second.write_batch(partition, [Record(0, NOW_MS, b"k", b"aborted 2")])
    second.abort()
    second.write_batch(partition, numbered_records(range(30, 31)))
    second.commit()
    first.write_batch(partition, [Record(0, NOW_MS, b"k", b"aborted 3")] * 4)
    first.abort()
    writer.write_batch(partition, numbered_records(range(40, 42)))


def write_compacted(writer: BatchWriter, partition: TopicPartition) -> None:
    """Records that supersede each other, tombstones, and a transaction, cleaned by the broker."""
    transaction = writer.begin_transaction(f"{partition}-compacted")
    transaction.write_batch(
        partition, [Record(0, NOW_MS, b"key %d" % n, b"old") for n in range(10)]
    )
    transaction.commit()
    for turn in range(4):
        records = [
            Record(0, NOW_MS + turn, b"key %d" % n, b"turn %d" % turn)
            for n in range(60)
            if n % (turn + 1) == 0
        ]
        writer.write_batch(
            partition, records, CompressionType.ZSTD if turn % 2 else CompressionType.NONE
        )
        tombstones = [Record(0, NOW_MS + turn, b"gone %d" % turn, None)]
        writer.write_batch(
            partition, [*numbered_records(range(100 * turn, 100 * turn + 3)), *tombstones]
        )

    def is_clean() -> bool:
        # Each round makes a new segment, so that all before it can be cleaned.
        writer.write_batch(partition, [Record(0, now_ms(), b"active", b"segment")])
        found = [record.key for record in read_partition_log(writer.router, partition).records]
        cleaned = [key for key in found if key != b"active"]
        return len(cleaned) == len(set(cleaned))

    wait_until(is_clean, "the broker to compact", HARNESS_TIMEOUT_S)


def write_sizes(writer: BatchWriter, partition: TopicPartition) -> None:
    """One byte, twenty megabytes, one byte."""
    writer.write_batch(partition, [Record(0, NOW_MS, None, b"a")])
    writer.write_batch(
        partition, [Record(0, NOW_MS, b"large", random.Random(1).randbytes(20 << 20))]
    )
    writer.write_batch(partition, [Record(0, NOW_MS, None, b"z")])


def write_large_batches(writer: BatchWriter, partition: TopicPartition) -> None:
    """Batches of three megabytes, whose records are small enough for any target."""
    rng = random.Random(2)
    for codec in (CompressionType.NONE, CompressionType.LZ4):
        records = [Record(0, NOW_MS + n, b"%d" % n, rng.randbytes(10_000)) for n in range(300)]
        writer.write_batch(partition, records, codec)


def write_counts(writer: BatchWriter, partition: TopicPartition) -> None:
    """Many batches of one record, and one batch of ten thousand."""
    for n in range(150):
        writer.write_batch(partition, numbered_records([n]))
    writer.write_batch(
        partition, numbered_records(range(1000, 11_000), size=20), CompressionType.SNAPPY
    )


def write_few(writer: BatchWriter, partition: TopicPartition) -> None:
    """A few records in six of seven partitions."""
    if few := partition.partition % 7:
        first = 10 * partition.partition
        writer.write_batch(partition, numbered_records(range(first, first + few)))


def write_nothing(writer: BatchWriter, partition: TopicPartition) -> None:
    """An empty topic."""


def write_before_transaction(writer: BatchWriter, partition: TopicPartition) -> None:
    """Plain records; the open transaction comes later."""
    writer.write_batch(partition, numbered_records(range(OPEN_FROM)))


CASES = {
    **{
        codec.name.lower(): TopicCase(write=write_codec(codec), source=ANY_TIME, remote=ANY_TIME)
        for codec in CompressionType
    },
    "shapes": TopicCase(write=write_shapes, source=ANY_TIME, remote=ANY_TIME),
    "times": TopicCase(write=write_times, source=ANY_TIME, remote=ANY_TIME),
    "append-time-to-create-time": TopicCase(write=write_some, source=APPEND_TIME),
    "create-time-to-append-time": TopicCase(write=write_some, remote=APPEND_TIME, with_times=False),
    "append-time-to-append-time": TopicCase(
        write=write_some, source=APPEND_TIME, remote=APPEND_TIME, with_times=False
    ),
    "transactions": TopicCase(write=write_transactions),
    "compacted": TopicCase(write=write_compacted, source=COMPACTED),
    "sizes": TopicCase(write=write_sizes, source=LARGE, remote=LARGE),
    "fat": TopicCase(write=write_large_batches, source=LARGE),
    "counts": TopicCase(write=write_counts),
    "wide": TopicCase(write=write_few, partitions=MANY_PARTITIONS),
    "empty": TopicCase(write=write_nothing),
    "open": TopicCase(write=write_before_transaction),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyResult:
    """The result of the copy: logs, snapshot and run maps."""

    flow: CopyFlow
    prefix: str
    snapshot: CopySnapshot
    runs: Mapping[TopicPartition, tuple[OffsetRun, ...]]
    target_while_open: PartitionLog

    def topic(self, case: str) -> str:
        return f"{self.prefix}-{case}"

    def logs(self, case: str) -> tuple[list[Record], PartitionLog, PartitionLog]:
        """The expected records, and both logs."""
        source, target = self.flow.partition_logs(TopicPartition(self.topic(case), 0))
        return source.expected_records, source, target

    def lanes(self, case: str) -> Mapping[str, int]:
        return self.snapshot.lanes[self.topic(case)]


@pytest.fixture(scope="module")
def copied(
    one_broker_clusters: tuple[Cluster, Cluster], request: pytest.FixtureRequest
) -> Iterator[CopyResult]:
    """Write every case, and copy them all in one run."""
    prefix = f"contents-{secrets.token_hex(3)}"
    flow = flow_between(prefix, *one_broker_clusters)
    topics = {f"{prefix}-{name}": case for name, case in CASES.items()}
    flow.create_topics(
        {topic: (case.partitions, case.source, case.remote) for topic, case in topics.items()}
    )
    counts = {topic: case.partitions for topic, case in topics.items()}
    job = flow.job(counts, tasks=2)
    writer = BatchWriter(flow.source)
    request.addfinalizer(writer.close)
    for topic, case in topics.items():
        for number in range(case.partitions):
            case.write(writer, TopicPartition(topic, number))
    _stop_compacting(flow, TopicPartition(f"{prefix}-compacted", 0))
    open_partition = TopicPartition(f"{prefix}-open", 0)
    transaction = writer.begin_transaction(f"{prefix}-open")
    transaction.write_batch(open_partition, numbered_records(range(50, 53)))
    writer.write_batch(open_partition, numbered_records(range(60, 62)))
    ends = flow.source_end_offsets(counts)
    with flow.harness(job) as harness:
        harness.wait_until_caught_up(ends | {str(open_partition): OPEN_FROM})
        _, target_while_open = flow.partition_logs(open_partition)
        transaction.commit()
        wait_until(
            lambda: len(flow.partition_logs(open_partition)[0].marker_offsets) == 1,
            "the marker of the commit",
        )
        harness.wait_until_caught_up(flow.source_end_offsets(counts))
        harness.drain()
        yield CopyResult(
            flow=flow,
            prefix=prefix,
            snapshot=harness.snapshot,
            runs={
                partition: harness.conductor.runs(partition)
                for partition in job.task_of_partition()
            },
            target_while_open=target_while_open,
        )


def _stop_compacting(flow: CopyFlow, partition: TopicPartition) -> None:
    """Stop compaction at the source: the copy is compared with it later."""
    set_topic_config(
        flow.source, partition.topic, {"cleanup.policy": "delete", "retention.ms": "-1"}
    )
    reads: list[PartitionLog] = []

    def is_still() -> bool:
        reads.append(flow.partition_logs(partition)[0])
        return len(reads) > UNCHANGED_CHECKS and reads[-1] == reads[-1 - UNCHANGED_CHECKS]

    wait_until(is_still, f"{partition} not to change any more", HARNESS_TIMEOUT_S)


@pytest.mark.parametrize("case", [name for name in CASES if name != "wide"])
def test_every_record_arrives_unchanged_and_in_order(copied: CopyResult, case: str) -> None:
    wanted, source, target = copied.logs(case)
    assert_copied(wanted, target, with_times=CASES[case].with_times)
    partition = TopicPartition(copied.topic(case), 0)
    assert_run_map_equals(wanted, target, copied.runs[partition])
    view = copied.snapshot.partitions[str(partition)]
    assert (view.position, view.expected) == (source.end, target.end)


def test_a_thousand_partitions_arrive_each_in_its_own(copied: CopyResult) -> None:
    topic = copied.topic("wide")
    flow = copied.flow
    source, target = (
        read_partitions(
            name, MANY_PARTITIONS, {"bootstrap.servers": properties["bootstrap.servers"]}
        )
        for properties, name in (
            (flow.source_properties, topic),
            (flow.target_properties, remote_topic_name(topic)),
        )
    )
    assert len(source) == sum(number % 7 for number in range(MANY_PARTITIONS))
    assert [(one.partition, one.content) for one in target] == [
        (one.partition, one.content) for one in source
    ]
    pairs = zip(source, target, strict=True)
    places = [(one.partition, one.offset, copy.offset) for one, copy in pairs]
    runs = [
        (number, run.source_first + n, run.target_first + n)
        for number in range(MANY_PARTITIONS)
        for run in copied.runs[TopicPartition(topic, number)]
        for n in range(run.length)
    ]
    assert runs == places


def test_batches_keep_their_codec_and_their_borders(copied: CopyResult) -> None:
    for codec in CompressionType:
        _, source, target = copied.logs(codec.name.lower())
        assert [_shape(one) for one in source.batch_headers] == [
            _shape(one) for one in target.batch_headers
        ]
        assert {header.codec_id for header in target.batch_headers} == {codec}


def test_a_topic_without_gaps_is_forwarded_unopened(copied: CopyResult) -> None:
    for codec in CompressionType:
        assert set(copied.lanes(codec.name.lower())) == {"plain"}


def test_what_was_compacted_is_reopened_and_keeps_its_tombstones(copied: CopyResult) -> None:
    wanted, source, target = copied.logs("compacted")
    assert source.end - source.start > len(source.records), "compaction made gaps"
    lanes = copied.lanes("compacted")
    assert lanes["compacted"] > 0
    assert lanes["control"] > 0
    gone = [one.key for one in target.records if one.value is None]
    assert gone == [b"gone %d" % turn for turn in range(4)]
    assert not any(header.attributes & ~7 for header in target.batch_headers), (
        "no other attribute bit"
    )


def test_aborted_transactions_do_not_arrive_and_no_transaction_bit_does(copied: CopyResult) -> None:
    _, source, target = copied.logs("transactions")
    assert len(source.records) - len(target.records) == 6
    assert not any(header.attributes for header in target.batch_headers)
    assert copied.lanes("transactions")["aborted-transaction"] == 3


def test_an_open_transaction_holds_copying_back_until_it_is_committed(copied: CopyResult) -> None:
    assert len(copied.target_while_open.records) == OPEN_FROM
    _, _, target = copied.logs("open")
    assert len(target.records) == OPEN_FROM + 5


def test_a_batch_too_large_for_the_target_is_split(copied: CopyResult) -> None:
    _, source, target = copied.logs("fat")
    assert max(header.size for header in source.batch_headers) > 1 << 20
    assert max(header.size for header in target.batch_headers) <= 1_048_588
    assert copied.lanes("fat")["larger-than-target-allows"] == 2


def test_append_time_becomes_the_time_of_the_records(copied: CopyResult) -> None:
    _, source, target = copied.logs("append-time-to-create-time")
    assert [one.timestamp for one in source.records] == [one.timestamp for one in target.records]
    assert copied.lanes("append-time-to-create-time") == {"log-append-time": 3}


@pytest.mark.parametrize("case", ["create-time-to-append-time", "append-time-to-append-time"])
def test_a_target_with_append_time_replaces_timestamps(copied: CopyResult, case: str) -> None:
    _, source, target = copied.logs(case)
    assert all(header.is_log_append_time for header in target.batch_headers)
    newest = max(one.timestamp for one in source.records)
    assert min(one.timestamp for one in target.records) >= newest


def test_read_uncommitted_copies_aborted_and_open_transactions(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    flow.create_topic(topic)
    partition = TopicPartition(topic, 0)
    write_transactions(writer, partition)
    writer.begin_transaction(topic).write_batch(partition, numbered_records(range(70, 72)))
    job = flow.job({topic: 1}, settings={"read_committed": False})
    with flow.harness(job) as harness:
        harness.wait_until_caught_up(flow.source_end_offsets({topic: 1}))
        harness.drain()
        source, target = flow.partition_logs(partition)
        assert len(source.records) == 21
        assert_copied(source.records, target)
        assert_run_map_equals(source.records, target, harness.conductor.runs(partition))


def _shape(header: BatchHeader) -> tuple[int, ...]:
    return header.record_count, header.size, header.base_timestamp, header.max_timestamp

"""What arrives is what was sent: every kind of record, batch and topic, compared on both sides."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import pytest

from sparkmirror.copy.snapshot import Snapshot
from sparkmirror.lab.cluster import Cluster
from sparkmirror.mirror.runs import Run
from sparkmirror.model import TopicPartition
from sparkmirror.wire.codecs import Codec
from sparkmirror.wire.header import Header
from sparkmirror.wire.records import Record
from tests.brokers.copy.conftest import flow_between
from tests.support.batches import JAVA, NOW, random_record
from tests.support.flows import Flow, remote_name
from tests.support.logs import Log, assert_copied, assert_runs, read_log
from tests.support.operator import set_topic
from tests.support.reading import read_partitions
from tests.support.stage import PATIENCE_S
from tests.support.waiting import wait_until
from tests.support.writing import Writer, now_ms, numbered

Write = Callable[[Writer, TopicPartition], None]

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
WIDE = 1000
OPEN_FROM = 5
LOOKS = 20
"""After so many that show the same, the cleaner has stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One topic: how it is made and written."""

    write: Write
    partitions: int = 1
    source: Mapping[str, str] = field(default_factory=dict)
    remote: Mapping[str, str] = field(default_factory=dict)
    with_times: bool = True


def write_codec(codec: Codec) -> Write:
    """Batches that Java compressed, and our own."""

    def write(writer: Writer, partition: TopicPartition) -> None:
        name = codec.name.lower()
        for batch in (f"v2 {name}", f"v2 {name} several blocks"):
            if batch in JAVA:
                writer.raw(partition, JAVA[batch].buffer)
        writer.write(partition, numbered(range(1000)), codec)
        writer.write(partition, numbered(range(1000, 1001)), codec)

    return write


def write_shapes(writer: Writer, partition: TopicPartition) -> None:
    """Null and empty keys and values; none, one, many, doubled and null headers."""
    rng = random.Random(7)
    many = tuple((b"header %d" % n, b"content %d" % n) for n in range(1000))
    shapes = [
        Record(0, NOW, None, None),
        Record(0, NOW, b"", b""),
        Record(0, NOW, None, b"v"),
        Record(0, NOW, b"k", None),
        Record(0, NOW, b"k", b"v", ((b"one", b"1"),)),
        Record(0, NOW, b"k", b"v", ((b"same", b"1"), (b"same", b"2"), (b"", None), (b"e", b""))),
        Record(0, NOW, b"k", b"v", many),
        *(random_record(0, rng) for _ in range(300)),
    ]
    writer.write(partition, shapes)
    for shape in shapes[:20]:
        writer.write(partition, [shape], Codec.LZ4)


def write_times(writer: Writer, partition: TopicPartition) -> None:
    """No time, the oldest, old ones, the future; in no order."""
    times = [-1, 0, 1, 915_148_800_000, now_ms() + 600_000, NOW, -1, now_ms(), 4_102_444_800_000, 0]
    writer.write(partition, [Record(0, time, b"k", b"%d" % time) for time in times])
    for time in times:
        writer.write(partition, [Record(0, time, b"k", b"alone")])


def write_some(writer: Writer, partition: TopicPartition) -> None:
    """Three batches of times long ago and now."""
    for time in (NOW, now_ms(), NOW + 5):
        writer.write(partition, numbered(range(20), timestamp=time), Codec.GZIP)


def write_transactions(writer: Writer, partition: TopicPartition) -> None:
    """Committed and aborted transactions that overlap, with plain records in between."""
    first, second = writer.begin(f"{partition}-1"), writer.begin(f"{partition}-2")
    writer.write(partition, numbered(range(3)))
    first.write(partition, numbered(range(10, 15)))
    second.write(partition, [Record(0, NOW, b"k", b"aborted 1")])
    writer.write(partition, numbered(range(20, 22)))
    first.commit()
    second.write(partition, [Record(0, NOW, b"k", b"aborted 2")])
    second.abort()
    second.write(partition, numbered(range(30, 31)))
    second.commit()
    first.write(partition, [Record(0, NOW, b"k", b"aborted 3")] * 4)
    first.abort()
    writer.write(partition, numbered(range(40, 42)))


def write_compacted(writer: Writer, partition: TopicPartition) -> None:
    """Records that supersede each other, tombstones, and a transaction, cleaned by the broker."""
    transaction = writer.begin(f"{partition}-compacted")
    transaction.write(partition, [Record(0, NOW, b"key %d" % n, b"old") for n in range(10)])
    transaction.commit()
    for turn in range(4):
        records = [
            Record(0, NOW + turn, b"key %d" % n, b"turn %d" % turn)
            for n in range(60)
            if n % (turn + 1) == 0
        ]
        writer.write(partition, records, Codec.ZSTD if turn % 2 else Codec.NONE)
        tombstones = [Record(0, NOW + turn, b"gone %d" % turn, None)]
        writer.write(partition, [*numbered(range(100 * turn, 100 * turn + 3)), *tombstones])

    def is_clean() -> bool:
        # Each round makes a new segment, so that all before it can be cleaned.
        writer.write(partition, [Record(0, now_ms(), b"active", b"segment")])
        found = [record.key for record in read_log(writer.router, partition).records]
        cleaned = [key for key in found if key != b"active"]
        return len(cleaned) == len(set(cleaned))

    wait_until(is_clean, "the broker to compact", PATIENCE_S)


def write_sizes(writer: Writer, partition: TopicPartition) -> None:
    """One byte, twenty megabytes, one byte."""
    writer.write(partition, [Record(0, NOW, None, b"a")])
    writer.write(partition, [Record(0, NOW, b"large", random.Random(1).randbytes(20 << 20))])
    writer.write(partition, [Record(0, NOW, None, b"z")])


def write_fat(writer: Writer, partition: TopicPartition) -> None:
    """Batches of three megabytes, whose records are small enough for any target."""
    rng = random.Random(2)
    for codec in (Codec.NONE, Codec.LZ4):
        records = [Record(0, NOW + n, b"%d" % n, rng.randbytes(10_000)) for n in range(300)]
        writer.write(partition, records, codec)


def write_counts(writer: Writer, partition: TopicPartition) -> None:
    """Many batches of one record, and one batch of ten thousand."""
    for n in range(150):
        writer.write(partition, numbered([n]))
    writer.write(partition, numbered(range(1000, 11_000), size=20), Codec.SNAPPY)


def write_few(writer: Writer, partition: TopicPartition) -> None:
    """A few records in six of seven partitions."""
    if few := partition.partition % 7:
        first = 10 * partition.partition
        writer.write(partition, numbered(range(first, first + few)))


def write_nothing(writer: Writer, partition: TopicPartition) -> None:
    """An empty topic."""


def write_open(writer: Writer, partition: TopicPartition) -> None:
    """Plain records; the open transaction comes later."""
    writer.write(partition, numbered(range(OPEN_FROM)))


CASES = {
    **{
        codec.name.lower(): Case(write=write_codec(codec), source=ANY_TIME, remote=ANY_TIME)
        for codec in Codec
    },
    "shapes": Case(write=write_shapes, source=ANY_TIME, remote=ANY_TIME),
    "times": Case(write=write_times, source=ANY_TIME, remote=ANY_TIME),
    "append-time-to-create-time": Case(write=write_some, source=APPEND_TIME),
    "create-time-to-append-time": Case(write=write_some, remote=APPEND_TIME, with_times=False),
    "append-time-to-append-time": Case(
        write=write_some, source=APPEND_TIME, remote=APPEND_TIME, with_times=False
    ),
    "transactions": Case(write=write_transactions),
    "compacted": Case(write=write_compacted, source=COMPACTED),
    "sizes": Case(write=write_sizes, source=LARGE, remote=LARGE),
    "fat": Case(write=write_fat, source=LARGE),
    "counts": Case(write=write_counts),
    "wide": Case(write=write_few, partitions=WIDE),
    "empty": Case(write=write_nothing),
    "open": Case(write=write_open),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """Everything was copied: where it stands, and what the copying said of it."""

    flow: Flow
    prefix: str
    snapshot: Snapshot
    runs: Mapping[TopicPartition, tuple[Run, ...]]
    target_while_open: Log

    def topic(self, case: str) -> str:
        return f"{self.prefix}-{case}"

    def logs(self, case: str) -> tuple[list[Record], Log, Log]:
        """What was wanted, and both logs."""
        source, target = self.flow.logs(TopicPartition(self.topic(case), 0))
        return source.wanted, source, target

    def lanes(self, case: str) -> Mapping[str, int]:
        return self.snapshot.lanes[self.topic(case)]


@pytest.fixture(scope="module")
def copied(pair: tuple[Cluster, Cluster], request: pytest.FixtureRequest) -> Iterator[Copied]:
    """Write every case, and copy them all in one run."""
    prefix = f"contents-{secrets.token_hex(3)}"
    flow = flow_between(prefix, *pair)
    topics = {f"{prefix}-{name}": case for name, case in CASES.items()}
    flow.create_many(
        {topic: (case.partitions, case.source, case.remote) for topic, case in topics.items()}
    )
    counts = {topic: case.partitions for topic, case in topics.items()}
    job = flow.job(counts, tasks=2)
    writer = Writer(flow.source)
    request.addfinalizer(writer.close)
    for topic, case in topics.items():
        for number in range(case.partitions):
            case.write(writer, TopicPartition(topic, number))
    _stop_compacting(flow, TopicPartition(f"{prefix}-compacted", 0))
    half_way = TopicPartition(f"{prefix}-open", 0)
    transaction = writer.begin(f"{prefix}-open")
    transaction.write(half_way, numbered(range(50, 53)))
    writer.write(half_way, numbered(range(60, 62)))
    ends = flow.ends(counts)
    with flow.stage(job) as stage:
        stage.wait_until_caught_up(ends | {str(half_way): OPEN_FROM})
        _, target_while_open = flow.logs(half_way)
        transaction.commit()
        wait_until(lambda: len(flow.logs(half_way)[0].markers) == 1, "the marker of the commit")
        stage.wait_until_caught_up(flow.ends(counts))
        stage.drain()
        yield Copied(
            flow=flow,
            prefix=prefix,
            snapshot=stage.snapshot,
            runs={partition: stage.conductor.runs(partition) for partition in sum(job.tasks, ())},
            target_while_open=target_while_open,
        )


def _stop_compacting(flow: Flow, partition: TopicPartition) -> None:
    """Let nothing change at the source any more: what is copied is compared with it later."""
    set_topic(flow.source, partition.topic, {"cleanup.policy": "delete", "retention.ms": "-1"})
    looks: list[Log] = []

    def is_still() -> bool:
        looks.append(flow.logs(partition)[0])
        return len(looks) > LOOKS and looks[-1] == looks[-1 - LOOKS]

    wait_until(is_still, f"{partition} not to change any more", PATIENCE_S)


@pytest.mark.parametrize("case", [name for name in CASES if name != "wide"])
def test_every_record_arrives_unchanged_and_in_order(copied: Copied, case: str) -> None:
    wanted, source, target = copied.logs(case)
    assert_copied(wanted, target, with_times=CASES[case].with_times)
    partition = TopicPartition(copied.topic(case), 0)
    assert_runs(wanted, target, copied.runs[partition])
    view = copied.snapshot.partitions[str(partition)]
    assert (view.position, view.expected) == (source.end, target.end)


def test_a_thousand_partitions_arrive_each_in_its_own(copied: Copied) -> None:
    topic = copied.topic("wide")
    flow = copied.flow
    source, target = (
        read_partitions(properties["bootstrap.servers"], name, WIDE)
        for properties, name in (
            (flow.source_properties, topic),
            (flow.target_properties, remote_name(topic)),
        )
    )
    assert len(source) == sum(number % 7 for number in range(WIDE))
    assert [(one.partition, one.content) for one in target] == [
        (one.partition, one.content) for one in source
    ]
    pairs = zip(source, target, strict=True)
    places = [(one.partition, one.offset, copy.offset) for one, copy in pairs]
    runs = [
        (number, run.source_first + n, run.target_first + n)
        for number in range(WIDE)
        for run in copied.runs[TopicPartition(topic, number)]
        for n in range(run.length)
    ]
    assert runs == places


def test_batches_keep_their_codec_and_their_borders(copied: Copied) -> None:
    for codec in Codec:
        _, source, target = copied.logs(codec.name.lower())
        assert [_shape(one) for one in source.headers] == [_shape(one) for one in target.headers]
        assert {header.codec_id for header in target.headers} == {codec}


def test_a_topic_without_gaps_is_forwarded_unopened(copied: Copied) -> None:
    for codec in Codec:
        assert set(copied.lanes(codec.name.lower())) == {"plain"}


def test_what_was_compacted_is_reopened_and_keeps_its_tombstones(copied: Copied) -> None:
    wanted, source, target = copied.logs("compacted")
    assert source.end - source.start > len(source.records), "the broker has made gaps"
    lanes = copied.lanes("compacted")
    assert lanes["compacted"] > 0
    assert lanes["control"] > 0
    gone = [one.key for one in target.records if one.value is None]
    assert gone == [b"gone %d" % turn for turn in range(4)]
    assert not any(header.attributes & ~7 for header in target.headers), "no bit is left over"


def test_aborted_transactions_do_not_arrive_and_no_transaction_bit_does(copied: Copied) -> None:
    _, source, target = copied.logs("transactions")
    assert len(source.records) - len(target.records) == 6
    assert not any(header.attributes for header in target.headers)
    assert copied.lanes("transactions")["aborted-transaction"] == 3


def test_an_open_transaction_holds_copying_back_until_it_is_committed(copied: Copied) -> None:
    assert len(copied.target_while_open.records) == OPEN_FROM
    _, _, target = copied.logs("open")
    assert len(target.records) == OPEN_FROM + 5


def test_a_batch_too_large_for_the_target_is_split(copied: Copied) -> None:
    _, source, target = copied.logs("fat")
    assert max(header.size for header in source.headers) > 1 << 20
    assert max(header.size for header in target.headers) <= 1_048_588
    assert copied.lanes("fat")["larger-than-target-allows"] == 2


def test_append_time_becomes_the_time_of_the_records(copied: Copied) -> None:
    _, source, target = copied.logs("append-time-to-create-time")
    assert [one.timestamp for one in source.records] == [one.timestamp for one in target.records]
    assert copied.lanes("append-time-to-create-time") == {"log-append-time": 3}


@pytest.mark.parametrize("case", ["create-time-to-append-time", "append-time-to-append-time"])
def test_a_target_with_append_time_stamps_anew(copied: Copied, case: str) -> None:
    _, source, target = copied.logs(case)
    assert all(header.is_log_append_time for header in target.headers)
    newest = max(one.timestamp for one in source.records)
    assert min(one.timestamp for one in target.records) >= newest


def test_read_uncommitted_copies_aborted_and_open_transactions(
    flow: Flow, topic: str, writer: Writer
) -> None:
    flow.create(topic)
    partition = TopicPartition(topic, 0)
    write_transactions(writer, partition)
    writer.begin(topic).write(partition, numbered(range(70, 72)))
    job = flow.job({topic: 1}, settings={"read_committed": False})
    with flow.stage(job) as stage:
        stage.wait_until_caught_up(flow.ends({topic: 1}))
        stage.drain()
        source, target = flow.logs(partition)
        assert len(source.records) == 21
        assert_copied(source.records, target)
        assert_runs(source.records, target, stage.conductor.runs(partition))


def _shape(header: Header) -> tuple[int, ...]:
    return header.record_count, header.size, header.base_timestamp, header.max_timestamp

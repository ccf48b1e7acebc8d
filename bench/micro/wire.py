"""What moving batches from broker to broker costs, next to kafka-python's consumer and producer.

Two real brokers of the lab; the same topic is copied batch by batch with the wire package (fetch,
verify, new header, produce) and record by record with the library, in one process, in turn. The
library gets the fast checksum that it would otherwise lack. Figures are processor time of this
process per megabyte of batches, so a busy machine changes them little; the brokers' own time is
not in them.

    python -m bench micro wire
"""

from __future__ import annotations

import random
import selectors
import tempfile
import time
import warnings
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.describe_topics import NewTopic
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec
from sparkmirror.lab.processes.process_reaper import ProcessReaper
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.checksum import crc32c, verify_crc
from sparkmirror.wire.batch.header import BytesLike, iter_batches, read_header
from sparkmirror.wire.batch.lanes.forward import BatchProducer, forward_batch
from sparkmirror.wire.batch.records import Record, build_batch
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.buffer_pool import BufferPool, MemoryBudget, ResponseFrame
from sparkmirror.wire.net.connection import BrokerConnection, ClientConfig
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.fetch import (
    FetchParams,
    FetchPosition,
    FetchResponseData,
    fetch_request,
    fetch_version,
)
from sparkmirror.wire.protocol.produce import (
    OutgoingBatch,
    ProduceResponseData,
    produce_request,
    produce_version,
)
from sparkmirror.wire.protocol.producer_ids import init_producer_id
from sparkmirror.wire.protocol.topics.offsets import LATEST, list_offsets

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka
    from kafka.record import default_records

BATCH_BYTES = (128 << 10, 16 << 10)
RECORD_BYTES = 1000
PARTITIONS = 8
TOTAL_BYTES = 256 << 20
LIBRARY_BYTES = 24 << 20
PARTITION_BYTES = 1 << 20
ANSWER_BYTES = 4 << 20
IN_FLIGHT = 2
DEADLINE_S = 120.0


class QueuedBatch(NamedTuple):
    """A batch that waits to be produced, and the frame it lies in."""

    size: int
    buffers: tuple[BytesLike, ...]
    frame: ResponseFrame


def connect(access: ClusterAccess, pool: BufferPool) -> BrokerConnection:
    """Open a connection to the one broker of a cluster."""
    client = ClientConfig(cluster=access.cluster, security=access.security)
    return BrokerConnection.open(client, Address(*access.bootstrap_servers[0]), pool=pool)


def make_router(access: ClusterAccess) -> Router:
    """Make a router."""
    client = ClientConfig(cluster=access.cluster, security=access.security)
    return Router(client, [Address(*address) for address in access.bootstrap_servers])


def new_producer(access: ClusterAccess) -> BatchProducer:
    """Get a producer id."""
    router = make_router(access)
    identity = init_producer_id(router)
    router.close()
    return BatchProducer(producer_id=identity.producer_id, epoch=identity.epoch)


def create_topic(access: ClusterAccess, name: str) -> None:
    """Create a topic that takes everything, and wait until its leaders serve."""
    with Admin(access) as admin:
        admin.create_topic(
            NewTopic(name=name, partitions=PARTITIONS, configs={"max.message.bytes": str(8 << 20)})
        )
    router = make_router(access)
    list_offsets(router, {TopicPartition(name, index): LATEST for index in range(PARTITIONS)})
    router.close()


def batch_of(size: int) -> bytes:
    """Build a batch of so many bytes, of records that do not compress."""
    rng, now = random.Random(size), int(time.time() * 1000)
    return build_batch(
        [
            Record(offset=n, timestamp=now, key=None, value=rng.randbytes(RECORD_BYTES), headers=())
            for n in range(size // RECORD_BYTES)
        ]
    )


def fill_topic(access: ClusterAccess, topic: str, size: int, total: int) -> int:
    """Write batches until there are so many bytes; return how many batches each partition has."""
    batch = memoryview(batch_of(size))
    header, producer = read_header(batch), new_producer(access)
    link = connect(access, BufferPool())
    rounds = total // size // PARTITIONS
    for number in range(rounds):
        parts = forward_batch(header, batch, producer, number * header.record_count)
        request = produce_request(
            produce_version(link.api_versions, by_id=False),
            [OutgoingBatch(topic, index, parts) for index in range(PARTITIONS)],
            timeout_ms=10_000,
        )
        answer = link.send_and_wait(request, DEADLINE_S)
        errors = {ack.error_code for ack in answer.partition_responses.values()}
        if errors != {0}:
            raise SystemExit(f"the source refuses its data: {errors}")
    link.close()
    return rounds


class BatchCopy:
    """The smallest loop: fetch while there is room, produce what waits, two requests in flight."""

    def __init__(
        self, source: ClusterAccess, target: ClusterAccess, topics: tuple[str, str]
    ) -> None:
        self.pool = BufferPool(MemoryBudget(64 << 20))
        self.source, self.target = connect(source, self.pool), connect(target, self.pool)
        self.topics = topics
        self.producer = new_producer(target)
        self.position = dict.fromkeys(range(PARTITIONS), 0)
        self.sequence = dict.fromkeys(range(PARTITIONS), 0)
        self.queue: dict[int, deque[QueuedBatch]] = {index: deque() for index in range(PARTITIONS)}
        self.copied = 0

    def run(self, total: int) -> None:
        """Copy until so many bytes have been acknowledged."""
        deadline = time.monotonic() + DEADLINE_S
        watched = selectors.EVENT_READ
        with selectors.DefaultSelector() as selector:
            for link in (self.source, self.target):
                selector.register(link, watched, link)
            while self.copied < total:
                self.fetch(deadline)
                self.produce(deadline)
                wanted = selectors.EVENT_READ
                if self.target.wants_write:
                    wanted |= selectors.EVENT_WRITE
                if wanted != watched:
                    watched = wanted
                    selector.modify(self.target, watched, self.target)
                for key, events in selector.select(1.0):
                    if events & selectors.EVENT_WRITE:
                        key.data.on_writable()
                    if events & selectors.EVENT_READ:
                        key.data.on_readable()
        self.source.close()
        self.target.close()

    def fetch(self, deadline: float) -> None:
        """Ask for what follows, once per broker at a time."""
        if self.source.in_flight_count or not self.pool.budget.available:
            return
        positions = [
            FetchPosition(self.topics[0], index, self.position[index], PARTITION_BYTES)
            for index, waiting in self.queue.items()
            if len(waiting) < 2
        ]
        if positions:
            version = fetch_version(self.source.api_versions, by_id=False)
            limits = FetchParams(max_wait_ms=20, max_bytes=ANSWER_BYTES)
            request = fetch_request(version, limits, positions)
            self.source.send(request, on_response=self.on_fetched, deadline=deadline)

    def on_fetched(self, answer: FetchResponseData) -> None:
        """Line up every whole batch; its frame is held until it is acknowledged."""
        for partition in answer.partitions:
            index, records = partition.partition, partition.records
            for span in iter_batches(records):
                header = read_header(records, span.start)
                if header.base_offset < self.position[index]:
                    continue
                batch = records[span.start : span.end]
                verify_crc(header, batch)
                parts = forward_batch(header, batch, self.producer, self.sequence[index])
                answer.frame.retain()
                self.queue[index].append(QueuedBatch(len(batch), parts, answer.frame))
                self.sequence[index] += header.record_count
                self.position[index] = header.next_offset

    def produce(self, deadline: float) -> None:
        """Send one batch of each partition that has one."""
        while self.target.in_flight_count < IN_FLIGHT:
            sent = {i: waiting.popleft() for i, waiting in self.queue.items() if waiting}
            if not sent:
                return
            request = produce_request(
                produce_version(self.target.api_versions, by_id=False),
                [OutgoingBatch(self.topics[1], i, batch.buffers) for i, batch in sent.items()],
                timeout_ms=10_000,
            )
            self.target.send(request, on_response=self.on_produced(sent), deadline=deadline)

    def on_produced(self, sent: dict[int, QueuedBatch]) -> Callable[[ProduceResponseData], None]:
        """Let go of the batches of a request once they are on the target."""

        def acknowledged(answer: ProduceResponseData) -> None:
            for ack in answer.partition_responses.values():
                if ack.error_code:
                    raise SystemExit(f"the target refuses a batch: {ack}")
                batch = sent[ack.partition]
                batch.frame.release()
                self.copied += batch.size

        return acknowledged


def copy_records(source: str, target: str, topics: tuple[str, str], records: int) -> None:
    """Copy with the library's consumer and producer."""
    library: Any = kafka
    consumer = library.KafkaConsumer(
        bootstrap_servers=source, check_crcs=False, max_poll_records=5000
    )
    consumer.assign([library.TopicPartition(topics[0], index) for index in range(PARTITIONS)])
    consumer.seek_to_beginning()
    producer = library.KafkaProducer(bootstrap_servers=target, batch_size=128 << 10, linger_ms=5)
    left = records
    while left > 0:
        for partition, found in consumer.poll(timeout_ms=1000).items():
            for record in found:
                producer.send(
                    topics[1],
                    record.value,
                    record.key,
                    partition=partition.partition,
                    timestamp_ms=record.timestamp,
                )
            left -= len(found)
    producer.flush()
    producer.close()
    consumer.close()


def time_work(work: Callable[[], None]) -> tuple[float, float]:
    """Processor seconds and seconds on the clock that some work takes."""
    clock, processor = time.monotonic(), time.process_time()
    work()
    return time.process_time() - processor, time.monotonic() - clock


def compare(source: Cluster, target: Cluster, size: int) -> None:
    """Print one line for batches of a size."""
    name = f"batches-of-{size >> 10}-kb"
    create_topic(source.access(), name)
    for copy in ("wire", "library"):
        create_topic(target.access(), f"{name}-{copy}")
    fill_topic(source.access(), name, size, TOTAL_BYTES)
    copier = BatchCopy(source.access(), target.access(), (name, f"{name}-wire"))
    total = TOTAL_BYTES // size // PARTITIONS * PARTITIONS * len(batch_of(size))
    ours, took = time_work(lambda: copier.run(total))
    records = LIBRARY_BYTES // RECORD_BYTES
    topics = (name, f"{name}-library")
    theirs, _ = time_work(
        lambda: copy_records(
            source.bootstrap_servers(), target.bootstrap_servers(), topics, records
        )
    )
    ms_per_mb = ours * 1000 / (total / 1e6)
    library = theirs * 1000 / (records * RECORD_BYTES / 1e6)
    print(
        f"{size >> 10:4} KB batches: {ms_per_mb:6.2f} ms of processor per MB,"
        f" {total / 1e6 / took:6.0f} MB/s; kafka-python {library:6.1f} ms per MB;"
        f" ratio {library / ms_per_mb:.0f}"
    )


def main() -> None:
    """Start two brokers, compare, clear up."""
    library: Any = default_records
    library.calc_crc32c = lambda data: crc32c(data, 0)
    specs = [ClusterSpec(name=name, heap="1g") for name in ("source", "target")]
    with ProcessReaper.start() as guard:
        directory = Path(tempfile.mkdtemp(prefix="sparkmirror-bench-"))
        guard.remove_on_exit(directory)
        source, target = Cluster.start_all(specs, directory, guard)
        for size in BATCH_BYTES:
            compare(source, target, size)
        for cluster in (source, target):
            cluster.remove()


if __name__ == "__main__":
    main()

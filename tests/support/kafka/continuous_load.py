"""Load on a source topic, and when its records arrive at the target. The client is librdkafka.

`ContinuousLoad` writes a record to every partition again and again. `ArrivalTimes` reads the remote
topic all the time, so it knows for how long a partition stood still.
"""

from __future__ import annotations

import logging
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from itertools import pairwise
from types import TracebackType
from typing import Any, Self

from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as LibraryPartition

from tests.support.kafka.bulk_reader import read_partitions

log = logging.getLogger(__name__)

_Consumer: Any = Consumer
_Partition: Any = LibraryPartition
_Producer: Any = Producer
READ_COMMITTED = {"isolation.level": "read_committed"}


class ContinuousLoad:
    """Writes `records` records to every partition, then waits, until the block ends."""

    def __init__(
        self, bootstrap: str, topic: str, partitions: int, interval_s: float, records: int = 1
    ) -> None:
        self.written = 0
        """How many records each partition has got."""
        self._topic = topic
        self._partitions = partitions
        self._interval_s = interval_s
        self._records = records
        self._errors: list[str] = []
        self._producer = _Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 1}
        )
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"load-{topic}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Write no more; return when the brokers have every record."""
        self._stopping.set()
        self._thread.join()
        left = self._producer.flush(120)
        assert not left, f"{left} records are not written"
        assert not self._errors, self._errors[:3]

    def _run(self) -> None:
        while not self._stopping.is_set():
            for _ in range(self._records):
                for partition in range(self._partitions):
                    self._write(partition, self.written)
                self.written += 1
            self._producer.poll(0)
            self._stopping.wait(self._interval_s)

    def _write(self, partition: int, number: int) -> None:
        self._producer.produce(
            self._topic,
            partition=partition,
            key=None if number % 7 == 0 else b"key %d" % number,
            value=None if number % 11 == 0 else b"value %d of %d" % (number, partition),
            headers=[("n", b"%d" % number), ("n", b""), ("nothing", None)][: number % 4],
            on_delivery=self._on_delivery,
        )

    def _on_delivery(self, error: object, _message: object) -> None:
        if error is not None:
            self._errors.append(str(error))


class ArrivalTimes:
    """Reads a topic, committed records only, until the block ends."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self._times: dict[int, list[float]] = {number: [] for number in range(partitions)}
        self._consumer = _Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 100,
                **READ_COMMITTED,
            }
        )
        self._topic = topic
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"arrivals-{topic}", daemon=True)

    def __enter__(self) -> Self:
        self._consumer.assign([_Partition(self._topic, number, 0) for number in self._times])
        self._thread.start()
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self._thread.join()
        self._consumer.close()

    def counts(self) -> list[int]:
        """How many records have arrived, by partition."""
        return [len(times) for times in self._times.values()]

    def have_all_arrived_since(self, moment: float) -> bool:
        """Whether every partition has got a record after a moment of the monotonic clock."""
        return all(times and times[-1] > moment for times in self._times.values())

    def largest_gaps(self, since: float, until: float) -> dict[int, float]:
        """The longest time without a record that touches this span, by partition."""
        return {
            number: largest_gap(times.copy(), since, until) for number, times in self._times.items()
        }

    def _run(self) -> None:
        while not self._stopping.is_set():
            for message in self._consumer.consume(500, timeout=0.1):
                if not message.error():
                    self._times[message.partition()].append(time.monotonic())
                else:
                    log.info("%s cannot be read now: %s", self._topic, message.error())


def largest_gap(times: list[float], since: float, until: float) -> float:
    """The longest time between two neighbours that touches the span from `since` to `until`.

    The time after the last one counts up to `until`.
    """
    first = max(bisect_right(times, since) - 1, 0)
    touched = [*times[first : bisect_left(times, until) + 1]]
    if not touched or touched[-1] < until:
        touched.append(until)
    return max((later - former for former, later in pairwise(touched)), default=0.0)


def assert_same_records(
    source: Mapping[str, str], topic: str, target: Mapping[str, str], remote: str, partitions: int
) -> int:
    """Every record of the source is at the target once, in order, unchanged, and no other one.

    Returns how many records were compared. The maps are librdkafka's settings of the clusters.
    """
    expected = _contents(source, topic, partitions)
    found = _contents(target, remote, partitions)
    for number in range(partitions):
        wanted, copied = expected[number], found[number]
        first = next(
            (at for at, pair in enumerate(zip(wanted, copied, strict=False)) if pair[0] != pair[1]),
            min(len(wanted), len(copied)),
        )
        assert copied == wanted, (
            f"{remote}-{number}: {len(copied)} records instead of {len(wanted)}; number {first} is"
            f" {copied[first : first + 2]} instead of {wanted[first : first + 2]}"
        )
    return sum(map(len, expected))


def _contents(
    settings: Mapping[str, str], topic: str, partitions: int
) -> list[list[tuple[object, ...]]]:
    contents: list[list[tuple[object, ...]]] = [[] for _ in range(partitions)]
    for record in read_partitions(topic, partitions, {**settings, **READ_COMMITTED}):
        contents[record.partition].append(record.content)
    return contents

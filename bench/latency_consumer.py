"""A consumer that records when each record of `bench.paced_producer` arrives, until SIGTERM.

    python -m bench.latency_consumer BOOTSTRAP TOPIC,... PARTITIONS FILE

It reads uncommitted records from the beginning. It writes two numbers for each record to the file:
the times of sending and of receiving, in nanoseconds.
"""

from __future__ import annotations

import array
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer, TopicPartition

from bench.paced_producer import SENT_AT


class Arrival(NamedTuple):
    """The times at which one record was sent and received, on the clock of this computer."""

    sent_ns: int
    received_ns: int


def main() -> None:
    """Consume until SIGTERM, then write the file."""
    bootstrap, topics, partitions, file = sys.argv[1:]
    signals: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: signals.append(number))
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "arrivals",
            "enable.auto.commit": False,
            "isolation.level": "read_uncommitted",
            "fetch.wait.max.ms": 100,
            "topic.metadata.refresh.interval.ms": 1000,
        }
    )
    consumer.assign(
        [
            TopicPartition(topic, index, 0)
            for topic in topics.split(",")
            for index in range(int(partitions))
        ]
    )
    times = array.array("Q")
    while not signals:
        record = consumer.poll(0.1)
        if record is not None and (value := record.value()) and record.error() is None:
            times.extend((SENT_AT.unpack_from(value)[0], time.time_ns()))
    Path(file).write_bytes(times.tobytes())
    consumer.close()


def read_arrivals(file: Path) -> Iterator[Arrival]:
    """Yield the arrivals of a file that `main` wrote."""
    for sent_ns, received_ns in read_pairs(file):
        yield Arrival(sent_ns, received_ns)


def read_pairs(file: Path) -> Iterator[tuple[int, int]]:
    """Yield the pairs of numbers in a file, as this program and `paced_producer` write them."""
    times = array.array("Q", file.read_bytes())
    for index in range(0, len(times), 2):
        yield times[index], times[index + 1]


if __name__ == "__main__":
    main()

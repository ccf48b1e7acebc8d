"""A reader that notes when each record of `bench.paced_producer` arrives, until it is told to end.

    python -m bench.latency_consumer BOOTSTRAP TOPIC PARTITIONS FILE

Reads uncommitted, from the beginning. The file gets two numbers for each record, in nanoseconds:
when it was sent, and when it was here.
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
    """One record's way, on the clock of this computer."""

    sent_ns: int
    received_ns: int


def main() -> None:
    """Read until told to end, then write everything down."""
    bootstrap, topic, partitions, file = sys.argv[1:]
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ended.append(number))
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
    consumer.assign([TopicPartition(topic, index, 0) for index in range(int(partitions))])
    found = array.array("Q")
    while not ended:
        record = consumer.poll(0.1)
        if record is not None and (value := record.value()) and record.error() is None:
            found.extend((SENT_AT.unpack_from(value)[0], time.time_ns()))
    Path(file).write_bytes(found.tobytes())
    consumer.close()


def read_arrivals(file: Path) -> Iterator[Arrival]:
    """Read what `main` wrote."""
    found = array.array("Q", file.read_bytes())
    for at in range(0, len(found), 2):
        yield Arrival(found[at], found[at + 1])


if __name__ == "__main__":
    main()

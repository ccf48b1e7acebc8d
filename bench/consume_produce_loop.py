"""A simple mirror: one loop that consumes and produces with confluent-kafka.

    python -m bench.consume_produce_loop SOURCE TARGET ALIAS CODEC TOPIC...

It is tuned for speed: many records per call, an idempotent producer with large batches, no callback
per record. It keeps partition, key, value, headers and timestamp. It stores no source offsets,
translates no group offsets and does not recover from errors.
"""

from __future__ import annotations

import signal
import sys
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

MAX_CONSUMED = 5000
BATCH_BYTES = 512 << 10
MAX_QUEUED = 200_000


def main() -> None:
    """Copy until SIGTERM or SIGINT."""
    source, target, alias, codec, *topics = sys.argv[1:]
    signals: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: signals.append(received))
    consumer = make_consumer(source, topics)
    producer = make_producer(target, codec)
    names = {topic: f"{alias}.{topic}" for topic in topics}
    while not signals:
        for record in consumer.consume(MAX_CONSUMED, timeout=0.1):
            forward(producer, names, record)
        producer.poll(0)
    producer.flush()
    consumer.close()


def make_consumer(source: str, topics: list[str]) -> Any:
    """Return a consumer of every partition from the beginning. It joins no group."""
    consumer = Consumer(
        {
            "bootstrap.servers": source,
            "group.id": "plain",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "check.crcs": False,
            "fetch.min.bytes": 1,
            "fetch.message.max.bytes": 4 << 20,
            "queued.max.messages.kbytes": 128 << 10,
        }
    )
    found = consumer.list_topics(timeout=30).topics
    consumer.assign(
        [TopicPartition(topic, index, 0) for topic in topics for index in found[topic].partitions]
    )
    return consumer


def make_producer(target: str, codec: str) -> Any:
    """Return an idempotent producer."""
    return Producer(
        {
            "bootstrap.servers": target,
            "enable.idempotence": True,
            "acks": "all",
            "compression.type": codec,
            "batch.size": BATCH_BYTES,
            "linger.ms": 5,
            "queue.buffering.max.messages": MAX_QUEUED,
            "queue.buffering.max.kbytes": 256 << 10,
        }
    )


def forward(producer: Any, names: dict[str, str], record: Any) -> None:
    """Produce one record to the same partition; wait while the producer's queue is full."""
    if record.error():
        raise SystemExit(str(record.error()))
    while True:
        try:
            producer.produce(
                names[record.topic()],
                record.value(),
                record.key(),
                record.partition(),
                timestamp=record.timestamp()[1],
                headers=record.headers(),
            )
        except BufferError:
            producer.poll(0.5)
        else:
            return


if __name__ == "__main__":
    main()

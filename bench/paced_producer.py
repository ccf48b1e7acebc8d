"""A producer with a steady rate. Each record holds the time at which it was sent.

    python -m bench.paced_producer BOOTSTRAP TOPIC,... PARTITIONS PER_SECOND SECONDS LINGER_MS
        VALUE_BYTES [HEADER_SHARE]

Records go to the partitions of all topics in turn. The value of every record begins with
`time.time_ns` at the call of the producer. A record's own timestamp has only milliseconds. With
HEADER_SHARE records have the headers of `bench.record_headers`.
"""

from __future__ import annotations

import struct
import sys
import time

from confluent_kafka import Producer

from bench.record_headers import headers_of

SENT_AT = struct.Struct(">Q")


def main() -> None:
    """Produce for the given number of seconds."""
    bootstrap, topic_list, *numbers = sys.argv[1:]
    partitions, per_second, seconds, linger_ms, value_bytes, *shares = map(int, numbers)
    topics, padding = topic_list.split(","), b"." * (value_bytes - SENT_AT.size)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": linger_ms, "acks": "all"})
    begun = time.monotonic()
    for number in range(per_second * seconds):
        due = begun + number / per_second
        while (left := due - time.monotonic()) > 0:
            time.sleep(left)
        headers: list[tuple[str, str | bytes | None]] = [
            (name.decode(), value) for share in shares for name, value in headers_of(number, share)
        ]
        turn, index = divmod(number, len(topics))
        producer.produce(
            topics[index],
            SENT_AT.pack(time.time_ns()) + padding,
            partition=turn % partitions,
            headers=headers,
        )
        producer.poll(0)
    producer.flush()


if __name__ == "__main__":
    main()

"""A producer with a steady rate. Each record holds the time at which it was sent.

    python -m bench.paced_producer BOOTSTRAP TOPIC PARTITIONS PER_SECOND SECONDS [HEADER_SHARE]

The value of every record begins with `time.time_ns` at the call of the producer. A record's own
timestamp has only milliseconds. With HEADER_SHARE records have the headers of
`bench.record_headers`.
"""

from __future__ import annotations

import struct
import sys
import time

from confluent_kafka import Producer

from bench.record_headers import headers_of

SENT_AT = struct.Struct(">Q")
VALUE_BYTES = 1000
_PADDING = b"." * (VALUE_BYTES - SENT_AT.size)


def main() -> None:
    """Produce for the given number of seconds."""
    bootstrap, topic, *numbers = sys.argv[1:]
    partitions, per_second, seconds, *shares = (int(number) for number in numbers)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "acks": "all"})
    begun = time.monotonic()
    for number in range(per_second * seconds):
        due = begun + number / per_second
        while (left := due - time.monotonic()) > 0:
            time.sleep(left)
        headers: list[tuple[str, str | bytes | None]] = [
            (name.decode(), value) for share in shares for name, value in headers_of(number, share)
        ]
        producer.produce(
            topic,
            SENT_AT.pack(time.time_ns()) + _PADDING,
            partition=number % partitions,
            headers=headers,
        )
        producer.poll(0)
    producer.flush()


if __name__ == "__main__":
    main()

"""A producer with a steady rate. Each record holds the time at which it was sent.

    python -m bench.paced_producer BOOTSTRAP TOPIC,... FILE PARTITIONS PER_SECOND SECONDS LINGER_MS
        VALUE_BYTES [HEADER_SHARE]

Records go to the partitions of all topics in turn. The value of every record begins with
`time.time_ns` at the call of the producer. A record's own timestamp has only milliseconds. With
HEADER_SHARE records have the headers of `bench.record_headers`. At its end, also by SIGTERM, it
writes two numbers for each record to the file: the times of sending and of the acknowledgement, in
nanoseconds.
"""

from __future__ import annotations

import array
import signal
import struct
import sys
import threading
import time
from functools import partial
from pathlib import Path

from confluent_kafka import Producer

from bench.record_headers import headers_of

SENT_AT = struct.Struct(">Q")
_POLL_S = 0.1
_FLUSH_S = 10.0


def main() -> None:
    """Produce for the given number of seconds, or until SIGTERM."""
    bootstrap, topic_list, file, *numbers = sys.argv[1:]
    partitions, per_second, seconds, linger_ms, value_bytes, *shares = map(int, numbers)
    topics, padding = topic_list.split(","), b"." * (value_bytes - SENT_AT.size)
    signals: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: signals.append(number))
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": linger_ms, "acks": "all"})
    times = array.array("Q")
    ended = threading.Event()
    poller = threading.Thread(target=_poll, args=(producer, ended))
    poller.start()
    begun = time.monotonic()
    for number in range(per_second * seconds):
        due = begun + number / per_second
        while (left := due - time.monotonic()) > 0:
            time.sleep(left)
        if signals:
            break
        headers: list[tuple[str, str | bytes | None]] = [
            (name.decode(), value) for share in shares for name, value in headers_of(number, share)
        ]
        turn, index = divmod(number, len(topics))
        sent_ns = time.time_ns()
        producer.produce(
            topics[index],
            SENT_AT.pack(sent_ns) + padding,
            partition=turn % partitions,
            headers=headers,
            on_delivery=partial(_add_acknowledgement, times, sent_ns),
        )
    producer.flush(_FLUSH_S)
    ended.set()
    poller.join()
    Path(file).write_bytes(times.tobytes())


def _poll(producer: Producer, ended: threading.Event) -> None:
    """Handle acknowledgements as they come."""
    while not ended.is_set():
        producer.poll(_POLL_S)


def _add_acknowledgement(
    times: array.array[int], sent_ns: int, error: object, _message: object
) -> None:
    if error is None:
        times.extend((sent_ns, time.time_ns()))


if __name__ == "__main__":
    main()

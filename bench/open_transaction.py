"""Hides records from consumers of committed records until all of them are written.

While a transaction is open in a partition, such a consumer reads nothing behind its first record,
also nothing that other producers have written. So a topic can be filled while a system runs that
copies it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Producer

_TIMEOUT_S = 60.0
_ID = "bench-open-transaction"


@contextmanager
def open_transaction(bootstrap: str, topic: str, partitions: int) -> Iterator[None]:
    """Write a record to each partition in a transaction that is committed after the block."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": _ID})
    producer.init_transactions(_TIMEOUT_S)
    producer.begin_transaction()
    for index in range(partitions):
        producer.produce(topic, b"hidden until the transaction ends", partition=index)
    producer.flush(_TIMEOUT_S)
    yield
    producer.commit_transaction(_TIMEOUT_S)

"""Hanging transactions: ended at their coordinator, and still open in a partition.

A broker may complete a transaction without the marker of a partition that had no leader just then
(4.3.0). What is open there keeps readers at read_committed waiting, and the marker of the *next*
transaction of the same producer would decide its fate, too: an abort would make void what was
committed. So before anybody goes on under a transactional id that was taken, what hangs is ended as
it was decided: an offset that was committed covers it, or it does not.

Blocks; belongs to the conductor's thread.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from sparkmirror.errors import UnsupportedByBroker
from sparkmirror.model import TopicPartition
from sparkmirror.wire.producers import describe_producers
from sparkmirror.wire.routing import Router


class Hanging(NamedTuple):
    """A transaction that is open in a partition, from an offset on, and nowhere else."""

    partition: TopicPartition
    producer_id: int
    start: int


class Look(NamedTuple):
    """What was seen: the partitions that could be looked at, and what hangs in them."""

    seen: frozenset[TopicPartition]
    hanging: tuple[Hanging, ...]


def look_for_hanging(
    router: Router, partitions: Collection[TopicPartition], producer_ids: Collection[int]
) -> Look:
    """Look for open transactions of producers that have none there. Who has no leader is unseen."""
    known = router.refresh({partition.topic for partition in partitions})
    led = frozenset(partition for partition in partitions if known.broker_of(partition))
    try:
        described = describe_producers(router, led)
    except UnsupportedByBroker:
        return Look(led, ())  # brokers before 2.8 do not forget markers
    return Look(
        frozenset(p for p, outcome in described.items() if outcome.value is not None),
        tuple(
            Hanging(partition, state.producer_id, state.transaction_start)
            for partition, outcome in described.items()
            for state in (outcome.value or {}).values()
            if state.producer_id in producer_ids and state.transaction_start >= 0
        ),
    )

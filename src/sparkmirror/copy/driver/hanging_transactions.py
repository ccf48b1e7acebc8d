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
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.producer_ids import describe_producers


class HangingTransaction(NamedTuple):
    """A transaction that is open in a partition, from an offset on, and nowhere else."""

    partition: TopicPartition
    producer_id: int
    start_offset: int


class HangingSearch(NamedTuple):
    """What was seen: the partitions that could be looked at, and what hangs in them."""

    searched: frozenset[TopicPartition]
    hanging: tuple[HangingTransaction, ...]


def find_hanging_transactions(
    router: Router, partitions: Collection[TopicPartition], producer_ids: Collection[int]
) -> HangingSearch:
    """Look for open transactions of producers that have none there. Who has no leader is unseen."""
    known = router.refresh({partition.topic for partition in partitions})
    led = frozenset(partition for partition in partitions if known.leader_node(partition))
    try:
        described = describe_producers(router, led)
    except UnsupportedByBroker:
        return HangingSearch(led, ())  # brokers before 2.8 do not forget markers
    return HangingSearch(
        frozenset(p for p, outcome in described.items() if outcome.value is not None),
        tuple(
            HangingTransaction(partition, state.producer_id, state.current_txn_start_offset)
            for partition, outcome in described.items()
            for state in (outcome.value or {}).values()
            if state.producer_id in producer_ids and state.current_txn_start_offset >= 0
        ),
    )

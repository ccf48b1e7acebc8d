"""Hanging transactions: ended at their coordinator, and still open in a partition.

A broker may complete a transaction without the marker of a partition that has no leader at that
moment (seen in 4.3.0). The records keep readers at read_committed waiting, and the marker of the
*next* transaction of the same producer would decide about them too: an abort would make committed
records void. So before a new producer uses a transactional id that was fenced, a hanging
transaction is ended as it was decided: committed if the committed offset covers it, else aborted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from sparkmirror.errors import UnsupportedByBroker
from sparkmirror.model import TopicPartition
from sparkmirror.wire.net.leader_calls import ApiResult
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.producer_ids import ProducerState, describe_producers


class HangingTransaction(NamedTuple):
    """A transaction that is open in a partition from an offset on."""

    partition: TopicPartition
    producer_id: int
    start_offset: int

    def was_committed(self, committed: Mapping[TopicPartition, int]) -> bool:
        """Whether the committed target end of its partition covers it."""
        return self.start_offset < committed[self.partition]


class HangingSearch(NamedTuple):
    """The partitions whose leaders answered, and the transactions that hang in them."""

    searched: frozenset[TopicPartition]
    hanging: tuple[HangingTransaction, ...]


def find_hanging_transactions(
    router: Router, partitions: Collection[TopicPartition], producer_ids: Collection[int]
) -> HangingSearch:
    """Search partitions for open transactions of producers that have none open elsewhere.

    A partition without a leader is not searched. Blocks.
    """
    known = router.refresh({partition.topic for partition in partitions})
    led = frozenset(partition for partition in partitions if known.leader_node(partition))
    try:
        return search_producer_states(describe_producers(router, led), producer_ids)
    except UnsupportedByBroker:
        return HangingSearch(led, ())  # brokers before 2.8 do not lose markers


def search_producer_states(
    described: Mapping[TopicPartition, ApiResult[dict[int, ProducerState]]],
    producer_ids: Collection[int],
) -> HangingSearch:
    """Find the open transactions of these producers in what the leaders answered."""
    return HangingSearch(
        frozenset(p for p, outcome in described.items() if outcome.value is not None),
        tuple(
            HangingTransaction(partition, state.producer_id, state.current_txn_start_offset)
            for partition, outcome in described.items()
            for state in (outcome.value or {}).values()
            if state.producer_id in producer_ids and state.current_txn_start_offset >= 0
        ),
    )

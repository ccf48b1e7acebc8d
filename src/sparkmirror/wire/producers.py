"""Producer ids: getting one, and what a partition's leader remembers of those that wrote to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kafka.protocol.admin import DescribeProducersRequest, DescribeProducersResponse
from kafka.protocol.producer import InitProducerIdRequest

from sparkmirror.model import TopicPartition
from sparkmirror.wire.codes import Code
from sparkmirror.wire.header import NO_EPOCH, NO_PRODUCER
from sparkmirror.wire.leadercalls import LeaderCall, Outcome, ask_leaders
from sparkmirror.wire.messages import DESCRIBE_PRODUCERS, INIT_PRODUCER_ID
from sparkmirror.wire.place import refusal
from sparkmirror.wire.routing import (
    CALL_TIMEOUT_S,
    AnyBroker,
    CoordinatorKind,
    CoordinatorOf,
    Destination,
    Router,
)
from sparkmirror.wire.topickey import by_topic

TRANSACTION_TIMEOUT_MS = 60_000
FIRST_WITH_IDENTITY = 3
"""The first version of InitProducerId that takes a producer's present id and epoch (2.5)."""


class ProducerIdentity(NamedTuple):
    """A producer id with its epoch: a higher epoch of the same id fences the lower ones."""

    producer_id: int
    epoch: int


class ProducerState(NamedTuple):
    """What a leader remembers of a producer; -1 where there is nothing."""

    producer_id: int
    epoch: int
    last_sequence: int
    """Of the last record appended, whether or not it is replicated yet."""
    last_timestamp_ms: int
    coordinator_epoch: int
    transaction_start: int
    """Offset at which its open transaction begins on this partition, -1 if none is open."""


def init_producer_id(
    router: Router,
    *,
    transactional_id: str | None = None,
    present: ProducerIdentity | None = None,
    transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS,
    timeout_s: float = CALL_TIMEOUT_S,
) -> ProducerIdentity:
    """Get a producer id: a new one, or that of a transactional id with a higher epoch.

    With a transactional id this aborts the open transaction of whoever used it before, and fences
    him. `present` is the identity we have: the broker refuses (90) if it is no longer the latest,
    so that one who slept through his replacement does not fence his successor.
    """
    to: Destination = AnyBroker()
    if transactional_id is not None:
        to = CoordinatorOf(CoordinatorKind.TRANSACTION, transactional_id)
    known = None
    if present is not None:
        known = [v for v in INIT_PRODUCER_ID.versions if v >= FIRST_WITH_IDENTITY]
    answer = router.call(
        INIT_PRODUCER_ID,
        lambda: InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=transaction_timeout_ms,
            producer_id=present.producer_id if present else NO_PRODUCER,
            producer_epoch=present.epoch if present else NO_EPOCH,
        ),
        to,
        codes=lambda answer: (answer.error_code,),
        known=known,
        timeout_s=timeout_s,
    )
    code = Code(answer.error_code)
    if code is not Code.NONE:
        raise refusal(router.client.cluster, INIT_PRODUCER_ID.name, code, transactional_id)
    return ProducerIdentity(answer.producer_id, answer.producer_epoch)


def describe_producers(
    router: Router, partitions: Iterable[TopicPartition], *, timeout_s: float = CALL_TIMEOUT_S
) -> dict[TopicPartition, Outcome[dict[int, ProducerState]]]:
    """Ask leaders which producers they remember, by producer id. Brokers from 2.8 on."""

    def make(group: Sequence[TopicPartition]) -> DescribeProducersRequest:
        return DescribeProducersRequest(
            topics=[
                DescribeProducersRequest.TopicRequest(
                    name=topic, partition_indexes=[p.partition for p in members]
                )
                for topic, members in by_topic(group)
            ]
        )

    call = LeaderCall(api=DESCRIBE_PRODUCERS, make=make, read=_read_producers)
    return ask_leaders(router, call, partitions, timeout_s=timeout_s)


def _read_producers(
    answer: DescribeProducersResponse,
) -> Iterator[tuple[TopicPartition, int, dict[int, ProducerState]]]:
    for topic in answer.topics:
        for p in topic.partitions:
            states = {
                s.producer_id: ProducerState(
                    s.producer_id,
                    s.producer_epoch,
                    s.last_sequence,
                    s.last_timestamp,
                    s.coordinator_epoch,
                    s.current_txn_start_offset,
                )
                for s in p.active_producers
            }
            yield TopicPartition(topic.name, p.partition_index), p.error_code, states

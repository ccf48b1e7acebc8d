"""Producer ids: a new one from the cluster, and the producer states of a partition's leader."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.header import NO_EPOCH, NO_PRODUCER_ID
from sparkmirror.wire.net.leader_calls import ApiResult, LeaderCall, call_leaders
from sparkmirror.wire.net.routing import (
    CALL_TIMEOUT_S,
    AnyBroker,
    CoordinatorOf,
    CoordinatorType,
    Destination,
    Router,
)
from sparkmirror.wire.protocol.apis import DESCRIBE_PRODUCERS, INIT_PRODUCER_ID
from sparkmirror.wire.protocol.error_code_exceptions import error_for_code
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.kafka_python_messages import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    InitProducerIdRequest,
)
from sparkmirror.wire.protocol.topics.topic_key import group_by_topic

TRANSACTION_TIMEOUT_MS = 60_000
FIRST_WITH_PRODUCER_EPOCH = 3
"""The first version of InitProducerId with the current id and epoch of the producer (2.5)."""


class ProducerIdAndEpoch(NamedTuple):
    """A producer id and its epoch. A higher epoch of the same id fences lower ones."""

    producer_id: int
    epoch: int


class ProducerState(NamedTuple):
    """The state of a producer on a leader; -1 for no value."""

    producer_id: int
    epoch: int
    last_sequence: int
    """The sequence of the last record appended, replicated or not."""
    coordinator_epoch: int
    current_txn_start_offset: int
    """The first offset of its open transaction on this partition; -1 if none is open."""


def init_producer_id(
    router: Router,
    *,
    transactional_id: str | None = None,
    current: ProducerIdAndEpoch | None = None,
    transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS,
    timeout_s: float = CALL_TIMEOUT_S,
) -> ProducerIdAndEpoch:
    """Return a new producer id, or that of a transactional id with a higher epoch.

    With a transactional id this aborts its open transaction and fences its previous producer.
    `current` is the identity of the caller: the broker refuses (90) if it is no longer the latest,
    so that a producer that was replaced does not fence its successor.
    """
    to: Destination = AnyBroker()
    if transactional_id is not None:
        to = CoordinatorOf(CoordinatorType.TRANSACTION, transactional_id)
    versions = None
    if current is not None:
        versions = [v for v in INIT_PRODUCER_ID.versions if v >= FIRST_WITH_PRODUCER_EPOCH]
    answer = router.call(
        INIT_PRODUCER_ID,
        lambda: InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=transaction_timeout_ms,
            producer_id=current.producer_id if current else NO_PRODUCER_ID,
            producer_epoch=current.epoch if current else NO_EPOCH,
        ),
        to,
        codes=lambda answer: (answer.error_code,),
        versions=versions,
        timeout_s=timeout_s,
    )
    code = ErrorCode(answer.error_code)
    if code is not ErrorCode.NONE:
        raise error_for_code(router.client.cluster, INIT_PRODUCER_ID.name, code, transactional_id)
    return ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch)


def describe_producers(
    router: Router, partitions: Iterable[TopicPartition], *, timeout_s: float = CALL_TIMEOUT_S
) -> dict[TopicPartition, ApiResult[dict[int, ProducerState]]]:
    """Return the producer states of each partition by producer id. Brokers from 2.8 on."""

    def build_message(group: Sequence[TopicPartition]) -> DescribeProducersRequest:
        return DescribeProducersRequest(
            topics=[
                DescribeProducersRequest.TopicRequest(
                    name=topic, partition_indexes=[p.partition for p in members]
                )
                for topic, members in group_by_topic(group)
            ]
        )

    call = LeaderCall(
        api=DESCRIBE_PRODUCERS, build_message=build_message, parse_response=_read_producers
    )
    return call_leaders(router, call, partitions, timeout_s=timeout_s)


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
                    s.coordinator_epoch,
                    s.current_txn_start_offset,
                )
                for s in p.active_producers
            }
            yield TopicPartition(topic.name, p.partition_index), p.error_code, states

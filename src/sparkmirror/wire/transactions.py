"""Transactions by hand: partitions join, the transaction ends, its coordinator tells its state.

    transaction.version   partitions join           an end                  the next transaction
    below 2               AddPartitionsToTxn         keeps the epoch         sequences go on
    2 and above           by Produce 12 and above    raises the epoch by 1   sequences begin at 0

EndTxn answers before its markers are written, and repeating it is safe. 51 belongs to normal life:
the end before is still under way.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from kafka.protocol.admin import DescribeTransactionsRequest, ListTransactionsRequest
from kafka.protocol.producer import AddPartitionsToTxnRequest, EndTxnRequest

from sparkmirror.model import TopicPartition
from sparkmirror.wire.codes import Code
from sparkmirror.wire.messages import (
    ADD_PARTITIONS_TO_TXN,
    DESCRIBE_TRANSACTIONS,
    END_TXN,
    LIST_TRANSACTIONS,
)
from sparkmirror.wire.place import refusal
from sparkmirror.wire.producers import ProducerIdentity
from sparkmirror.wire.routing import (
    CALL_TIMEOUT_S,
    AnyBroker,
    CoordinatorKind,
    CoordinatorOf,
    Node,
    Router,
)
from sparkmirror.wire.topickey import by_topic

EPOCH_RAISING = 2
"""The transaction.version from which on an end raises the epoch (KIP-890)."""
FIRST_EPOCH_RAISING_END = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionState:
    """What a coordinator says of a transactional id. `state` is Kafka's word, as CompleteAbort."""

    state: str
    identity: ProducerIdentity
    timeout_ms: int
    started_ms: int
    partitions: frozenset[TopicPartition]

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to be written: no transaction open, no markers on their way."""
        return self.state in ("Empty", "CompleteCommit", "CompleteAbort")


def transaction_version(router: Router, *, timeout_s: float = CALL_TIMEOUT_S) -> int:
    """How the cluster does transactions."""
    link = router.connection_to(AnyBroker(), timeout_s=timeout_s)
    return link.versions.transaction_version


def add_partitions(
    router: Router,
    transactional_id: str,
    identity: ProducerIdentity,
    partitions: Collection[TopicPartition],
    *,
    timeout_s: float = CALL_TIMEOUT_S,
) -> dict[TopicPartition, Code]:
    """Join partitions to a transaction, beginning one if none is open.

    If one partition is refused the others are not attempted (55) and none has joined.
    """
    answer = router.call(
        ADD_PARTITIONS_TO_TXN,
        lambda: AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=identity.producer_id,
            v3_and_below_producer_epoch=identity.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(
                    name=topic, partitions=[p.partition for p in group]
                )
                for topic, group in by_topic(partitions)
            ],
        ),
        _coordinator(transactional_id),
        codes=lambda answer: (
            p.partition_error_code
            for topic in answer.results_by_topic_v3_and_below
            for p in topic.results_by_partition
        ),
        timeout_s=timeout_s,
    )
    return {
        TopicPartition(topic.name, p.partition_index): Code(p.partition_error_code)
        for topic in answer.results_by_topic_v3_and_below
        for p in topic.results_by_partition
    }


def end_transaction(
    router: Router,
    transactional_id: str,
    identity: ProducerIdentity,
    *,
    commit: bool,
    version: int,
    timeout_s: float = CALL_TIMEOUT_S,
) -> ProducerIdentity:
    """Commit or abort; return the identity for the next transaction. `version` is the cluster's.

    A RequestRefused whose code asks for FENCED means that another has taken over the id.
    """
    raises = version >= EPOCH_RAISING
    known = [v for v in END_TXN.versions if raises or v < FIRST_EPOCH_RAISING_END]
    answer = router.call(
        END_TXN,
        lambda: EndTxnRequest(
            transactional_id=transactional_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            committed=commit,
        ),
        _coordinator(transactional_id),
        codes=lambda answer: (answer.error_code,),
        known=known,
        timeout_s=timeout_s,
    )
    code = Code(answer.error_code)
    if code is not Code.NONE:
        raise refusal(router.client.cluster, END_TXN.name, code, transactional_id)
    if answer.producer_id < 0:
        return identity
    return ProducerIdentity(answer.producer_id, answer.producer_epoch)


def describe_transaction(
    router: Router, transactional_id: str, *, timeout_s: float = CALL_TIMEOUT_S
) -> TransactionState | None:
    """Ask the coordinator about a transactional id; None if it has none. Brokers from 3.0 on."""
    answer = router.call(
        DESCRIBE_TRANSACTIONS,
        lambda: DescribeTransactionsRequest(transactional_ids=[transactional_id]),
        _coordinator(transactional_id),
        codes=lambda answer: (state.error_code for state in answer.transaction_states),
        timeout_s=timeout_s,
    )
    (state,) = answer.transaction_states
    code = Code(state.error_code)
    if code is Code.TRANSACTIONAL_ID_NOT_FOUND:
        return None
    if code is not Code.NONE:
        raise refusal(router.client.cluster, DESCRIBE_TRANSACTIONS.name, code, transactional_id)
    return TransactionState(
        state=state.transaction_state,
        identity=ProducerIdentity(state.producer_id, state.producer_epoch),
        timeout_ms=state.transaction_timeout_ms,
        started_ms=state.transaction_start_time_ms,
        partitions=frozenset(
            TopicPartition(topic.topic, p) for topic in state.topics for p in topic.partitions
        ),
    )


def transactional_ids(router: Router, *, timeout_s: float = CALL_TIMEOUT_S) -> frozenset[str]:
    """Every transactional id that the cluster remembers and we may see. Brokers from 3.0 on.

    Each broker knows those it coordinates, so every one is asked; a broker that is down coordinates
    none. A coordinator that moves between two answers may hide its ids, once.
    """
    known: set[str] = set()
    for node_id in sorted(router.refresh(timeout_s=timeout_s).brokers):
        answer = router.call(
            LIST_TRANSACTIONS,
            lambda: ListTransactionsRequest(state_filters=[], producer_id_filters=[]),
            Node(node_id),
            codes=lambda answer: (answer.error_code,),
            timeout_s=timeout_s,
        )
        code = Code(answer.error_code)
        if code is not Code.NONE:
            raise refusal(router.client.cluster, LIST_TRANSACTIONS.name, code)
        known |= {state.transactional_id for state in answer.transaction_states}
    return frozenset(known)


def _coordinator(transactional_id: str) -> CoordinatorOf:
    return CoordinatorOf(CoordinatorKind.TRANSACTION, transactional_id)

"""Transactions: partitions are added, the transaction ends, its coordinator describes it.

    transaction.version   partitions are added by   EndTxn                  the next transaction
    below 2               AddPartitionsToTxn        keeps the epoch         sequences continue
    2 and above           Produce 12 and above      raises the epoch by 1   sequences start at 0

EndTxn is answered before its markers are written. Repeating it is safe. Code 51 is normal: the
previous EndTxn is not finished yet.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial

from sparkmirror.backoff import seconds_left
from sparkmirror.errors import ClusterError
from sparkmirror.model import TopicPartition
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.routing import (
    CALL_TIMEOUT_S,
    AnyBroker,
    CoordinatorOf,
    CoordinatorType,
    NodeWithId,
    Router,
)
from sparkmirror.wire.protocol.apis import (
    ADD_PARTITIONS_TO_TXN,
    DESCRIBE_TRANSACTIONS,
    END_TXN,
    LIST_TRANSACTIONS,
)
from sparkmirror.wire.protocol.error_code_exceptions import error_for_code
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.kafka_python_messages import (
    AddPartitionsToTxnRequest,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    EndTxnRequest,
    ListTransactionsRequest,
)
from sparkmirror.wire.protocol.producer_ids import ProducerIdAndEpoch
from sparkmirror.wire.protocol.topics.topic_key import group_by_topic

_TransactionState = DescribeTransactionsResponse.TransactionState

EPOCH_BUMPING_VERSION = 2
"""The first transaction.version in which EndTxn raises the epoch (KIP-890)."""
FIRST_EPOCH_BUMPING_END_TXN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionDescription:
    """A transactional id on its coordinator. `state` is Kafka's word, for example CompleteAbort."""

    state: str
    producer: ProducerIdAndEpoch
    timeout_ms: int
    start_time_ms: int
    partitions: frozenset[TopicPartition]

    @property
    def is_complete(self) -> bool:
        """Whether no transaction is open and no marker is still to be written."""
        return self.state in ("Empty", "CompleteCommit", "CompleteAbort")


def transaction_version(router: Router, *, timeout_s: float = CALL_TIMEOUT_S) -> int:
    """Return the finalized transaction.version of the cluster."""
    connection = router.connection_to(AnyBroker(), timeout_s=timeout_s)
    return connection.api_versions.transaction_version


def add_partitions_to_txn(
    router: Router,
    transactional_id: str,
    identity: ProducerIdAndEpoch,
    partitions: Collection[TopicPartition],
    *,
    timeout_s: float = CALL_TIMEOUT_S,
) -> dict[TopicPartition, ErrorCode]:
    """Add partitions to a transaction; start one if none is open. Returns the codes.

    If one partition is refused, the others get 55 (not attempted), and none is added.
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
                for topic, group in group_by_topic(partitions)
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
        TopicPartition(topic.name, p.partition_index): ErrorCode(p.partition_error_code)
        for topic in answer.results_by_topic_v3_and_below
        for p in topic.results_by_partition
    }


def end_txn(
    router: Router,
    transactional_id: str,
    identity: ProducerIdAndEpoch,
    *,
    commit: bool,
    version: int,
    timeout_s: float = CALL_TIMEOUT_S,
) -> ProducerIdAndEpoch:
    """Commit or abort; return the identity for the next transaction.

    `version` is the cluster's transaction.version. RequestRefused with a code of action FENCED
    means that another producer uses the transactional id.
    """
    bumps_epoch = version >= EPOCH_BUMPING_VERSION
    versions = [v for v in END_TXN.versions if bumps_epoch or v < FIRST_EPOCH_BUMPING_END_TXN]
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
        versions=versions,
        timeout_s=timeout_s,
    )
    code = ErrorCode(answer.error_code)
    if code is not ErrorCode.NONE:
        raise error_for_code(router.client.cluster, END_TXN.name, code, transactional_id)
    if answer.producer_id < 0:
        return identity
    return ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch)


def describe_transaction(
    router: Router, transactional_id: str, *, timeout_s: float = CALL_TIMEOUT_S
) -> TransactionDescription | None:
    """Describe a transactional id; None if the coordinator has none. Brokers from 3.0 on."""
    answer = router.call(
        DESCRIBE_TRANSACTIONS,
        lambda: DescribeTransactionsRequest(transactional_ids=[transactional_id]),
        _coordinator(transactional_id),
        codes=lambda answer: (state.error_code for state in answer.transaction_states),
        timeout_s=timeout_s,
    )
    (state,) = answer.transaction_states
    return _read_transaction(router, state)


def describe_transactions(
    router: Router, transactional_ids: Collection[str], *, timeout_s: float = CALL_TIMEOUT_S
) -> dict[str, TransactionDescription | None]:
    """Describe transactional ids as `describe_transaction` does, with a request per coordinator."""
    deadline = router.deadline_after(timeout_s)
    by_address: dict[Address, list[str]] = {}
    found: dict[str, TransactionDescription | None] = {}
    for transactional_id in transactional_ids:
        try:
            address = router.find_address(_coordinator(transactional_id), deadline)
        except ClusterError:
            found[transactional_id] = describe_transaction(
                router, transactional_id, timeout_s=seconds_left(deadline)
            )
        else:
            by_address.setdefault(address, []).append(transactional_id)
    for ids in by_address.values():
        answer = router.call(
            DESCRIBE_TRANSACTIONS,
            partial(DescribeTransactionsRequest, transactional_ids=ids),
            _coordinator(ids[0]),
            codes=lambda _answer: (),
            timeout_s=seconds_left(deadline),
        )
        for state in answer.transaction_states:
            if ErrorCode(state.error_code).is_retriable:
                router.invalidate(_coordinator(state.transactional_id))
                found[state.transactional_id] = describe_transaction(
                    router, state.transactional_id, timeout_s=seconds_left(deadline)
                )
            else:
                found[state.transactional_id] = _read_transaction(router, state)
    return found


def _read_transaction(router: Router, state: _TransactionState) -> TransactionDescription | None:
    """Raises the error of a refused description."""
    code = ErrorCode(state.error_code)
    if code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        return None
    if code is not ErrorCode.NONE:
        raise error_for_code(
            router.client.cluster, DESCRIBE_TRANSACTIONS.name, code, state.transactional_id
        )
    return TransactionDescription(
        state=state.transaction_state,
        producer=ProducerIdAndEpoch(state.producer_id, state.producer_epoch),
        timeout_ms=state.transaction_timeout_ms,
        start_time_ms=state.transaction_start_time_ms,
        partitions=frozenset(
            TopicPartition(topic.topic, p) for topic in state.topics for p in topic.partitions
        ),
    )


def list_transactional_ids(router: Router, *, timeout_s: float = CALL_TIMEOUT_S) -> frozenset[str]:
    """Return all transactional ids that this user may describe. Brokers from 3.0 on.

    Each broker lists those that it coordinates, so all brokers are asked; a stopped broker
    coordinates none. If a coordinator moves between two requests, its ids may be missing once.
    """
    ids: set[str] = set()
    for node_id in sorted(router.refresh(timeout_s=timeout_s).brokers):
        answer = router.call(
            LIST_TRANSACTIONS,
            lambda: ListTransactionsRequest(state_filters=[], producer_id_filters=[]),
            NodeWithId(node_id),
            codes=lambda answer: (answer.error_code,),
            timeout_s=timeout_s,
        )
        code = ErrorCode(answer.error_code)
        if code is not ErrorCode.NONE:
            raise error_for_code(router.client.cluster, LIST_TRANSACTIONS.name, code)
        ids |= {state.transactional_id for state in answer.transaction_states}
    return frozenset(ids)


def _coordinator(transactional_id: str) -> CoordinatorOf:
    return CoordinatorOf(CoordinatorType.TRANSACTION, transactional_id)

"""A writer whose every write is a transaction, and which fences the writers before it.

Connect's leaders write the config topic like this if `exactly.once.source.support` is preparing or
enabled. They share one transactional id, so a replaced leader that does not know it yet cannot
write. The caller holds a lock: a writer serves one thread at a time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from sparkmirror.backoff import Backoff
from sparkmirror.errors import ClusterTimeout, LeadershipLost, RequestRefused, UnsupportedByBroker
from sparkmirror.mirror.offsets.records import RecordBytes
from sparkmirror.model import TopicPartition
from sparkmirror.store.keyed_append import split_into_batches
from sparkmirror.wire.batch.header import read_header
from sparkmirror.wire.batch.lanes.forward import BatchProducer, forward_batch
from sparkmirror.wire.batch.records import Record, build_batch
from sparkmirror.wire.net.routing import AnyBroker, Router
from sparkmirror.wire.protocol.apis import INIT_PRODUCER_ID
from sparkmirror.wire.protocol.error_code_exceptions import error_for_code
from sparkmirror.wire.protocol.error_codes import ErrorAction, ErrorCode
from sparkmirror.wire.protocol.producer_ids import ProducerIdAndEpoch, init_producer_id
from sparkmirror.wire.protocol.synchronous.synchronous_fetch import raise_for_code
from sparkmirror.wire.protocol.synchronous.synchronous_produce import append_batch
from sparkmirror.wire.protocol.topics.offsets import LATEST, list_offsets
from sparkmirror.wire.protocol.transactions import (
    EPOCH_BUMPING_VERSION,
    add_partitions_to_txn,
    end_txn,
    transaction_version,
)

STABLE_TIMEOUT_S = 30.0
NO_TRANSACTIONS = (
    "without transactions records cannot be copied exactly once: set"
    " exactly.once.source.support=disabled"
)
FENCED_ACTIONS = frozenset({ErrorAction.FENCED, ErrorAction.TRANSACTION})
"""A newer writer exists; or the coordinator has expired a transactional id that was not used."""


class FencedWriter:
    """Writes one partition under a transactional id."""

    def __init__(self, transactional_id: str) -> None:
        self._transactional_id = transactional_id
        self._producer: ProducerIdAndEpoch | None = None
        self._sequence = 0
        self._may_have_open_transaction = False
        """Whether a transaction may be open, because its end was not acknowledged."""

    def init_transactions(self, router: Router) -> None:
        """Take a new producer epoch. This fences every earlier writer.

        Raises UnsupportedByBroker if the cluster has no transactions.
        """
        try:
            # A service without producer ids may have no coordinator to ask for one.
            INIT_PRODUCER_ID.require_support(router.connection_to(AnyBroker()).api_versions)
            self._producer = init_producer_id(router, transactional_id=self._transactional_id)
        except (UnsupportedByBroker, RequestRefused) as error:
            if isinstance(error, RequestRefused) and not ErrorCode(error.code).is_unsupported:
                raise
            reason = str(error).removeprefix(f"{error.cluster}: ")
            raise UnsupportedByBroker(error.cluster, f"{reason}; {NO_TRANSACTIONS}") from error
        self._sequence, self._may_have_open_transaction = 0, False

    def append(
        self, router: Router, partition: TopicPartition, records: Sequence[RecordBytes], now_ms: int
    ) -> None:
        """Append records as one transaction. Returns when they are committed.

        1. After a failure: abort the open transaction and take a new epoch, unless a newer writer
           exists.
        2. Add the partition to the transaction, if the brokers do not do it themselves.
        3. Append.
        4. Commit.
        5. Wait for the marker: the coordinator acknowledges the commit before it is written.

        Raises LeadershipLost if a newer writer exists, else ClusterError.
        """
        if self._producer is None:
            raise LeadershipLost("this worker has not claimed the write privileges for configs")
        try:
            self._abort_open_transaction(router, self._producer)
            self._may_have_open_transaction = True
            end = self._append_in_transaction(router, partition, records, now_ms)
            self._may_have_open_transaction = False
        except RequestRefused as error:
            if ErrorCode(error.code).action in FENCED_ACTIONS:
                self._producer = None
                raise LeadershipLost(
                    f"{error}. Another worker has claimed the write privileges for configs, or the"
                    " claim has expired: claim again if this worker leads the group"
                ) from error
            raise
        _wait_until_stable(router, partition, end)

    def _abort_open_transaction(self, router: Router, present: ProducerIdAndEpoch) -> None:
        """Abort the open transaction, take a new epoch and restart the sequence at 0.

        The new epoch alone would abort it too, but brokers before 4.0 then fence this writer.
        """
        if not self._may_have_open_transaction:
            return
        version = transaction_version(router)
        try:
            present = end_txn(
                router, self._transactional_id, present, commit=False, version=version
            )
        except RequestRefused as error:
            if error.code != ErrorCode.INVALID_TXN_STATE:  # no transaction was open
                raise
        self._producer = init_producer_id(
            router, transactional_id=self._transactional_id, current=present
        )
        self._sequence = 0

    def _append_in_transaction(
        self, router: Router, partition: TopicPartition, records: Sequence[RecordBytes], now_ms: int
    ) -> int:
        assert self._producer is not None
        version = transaction_version(router)
        if version < EPOCH_BUMPING_VERSION:
            code = add_partitions_to_txn(
                router, self._transactional_id, self._producer, [partition]
            )[partition]
            if code is not ErrorCode.NONE:
                raise error_for_code(
                    router.client.cluster, "AddPartitionsToTxn", code, self._transactional_id
                )
        end = 0
        for batch in split_into_batches(records, now_ms):
            end = self._append_batch(router, partition, batch)
        before = self._producer
        self._producer = end_txn(
            router, self._transactional_id, self._producer, commit=True, version=version
        )
        if self._producer != before:
            self._sequence = 0
        return end

    def _append_batch(
        self, router: Router, partition: TopicPartition, batch: Sequence[Record]
    ) -> int:
        assert self._producer is not None
        view = memoryview(build_batch([r._replace(offset=n) for n, r in enumerate(batch)]))
        producer = BatchProducer(
            producer_id=self._producer.producer_id, epoch=self._producer.epoch, transactional=True
        )
        buffers = forward_batch(read_header(view), view, producer, self._sequence)
        base = append_batch(router, partition, buffers, transactional_id=self._transactional_id)
        self._sequence += len(batch)
        return base + len(batch)


def _wait_until_stable(router: Router, partition: TopicPartition, end: int) -> None:
    """Wait until no transaction is open before `end`, so that a reader gets all records."""
    deadline, backoff = time.monotonic() + STABLE_TIMEOUT_S, Backoff(initial_s=0.005, max_s=0.2)
    while True:
        code, listed = list_offsets(router, {partition: LATEST}, read_committed=True)[partition]
        raise_for_code(router, partition, code)
        assert listed is not None
        if listed.offset >= end:
            return
        if time.monotonic() > deadline:
            raise ClusterTimeout(
                router.client.cluster,
                f"{partition}: a transaction before offset {end} stays open; find its producer",
            )
        time.sleep(backoff.next_delay_s())

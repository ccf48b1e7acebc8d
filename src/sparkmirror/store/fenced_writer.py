"""Writing with a claim: each write is a transaction, and a new claim shuts the older ones out.

Connect's leaders write the config topic like this when `exactly.once.source.support` is preparing
or enabled, all with one transactional id, so that a leader that does not know yet that it was
replaced cannot write any more. Not for threads to share: whoever uses it holds a lock.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from sparkmirror.backoff import Backoff
from sparkmirror.errors import ClusterTimeout, LeadershipLost, RequestRefused
from sparkmirror.mirror.offsets.records import RecordBytes
from sparkmirror.model import TopicPartition
from sparkmirror.store.keyed_append import split_into_batches
from sparkmirror.wire.batch.forward import BatchProducer, forward_batch
from sparkmirror.wire.batch.header import read_header
from sparkmirror.wire.batch.records import Record, build_batch
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.error_codes import ErrorAction, ErrorCode
from sparkmirror.wire.protocol.offsets import LATEST, list_offsets
from sparkmirror.wire.protocol.producer_ids import ProducerIdAndEpoch, init_producer_id
from sparkmirror.wire.protocol.response_errors import error_for_code
from sparkmirror.wire.protocol.single_fetch import raise_for_code
from sparkmirror.wire.protocol.single_produce import append_batch
from sparkmirror.wire.protocol.transactions import (
    EPOCH_BUMPING_VERSION,
    add_partitions_to_txn,
    end_txn,
    transaction_version,
)

STABLE_TIMEOUT_S = 30.0
FENCED_ACTIONS = frozenset({ErrorAction.FENCED, ErrorAction.TRANSACTION})
"""Another has claimed; or the coordinator has forgotten an id that was not used for long."""


class FencedWriter:
    """The writing side of one partition under a transactional id."""

    def __init__(self, transactional_id: str) -> None:
        self._transactional_id = transactional_id
        self._producer: ProducerIdAndEpoch | None = None
        self._sequence = 0
        self._may_have_open_transaction = False
        """Whether a transaction may be open whose end we do not know."""

    def init_transactions(self, router: Router) -> None:
        """Shut out everybody who claimed before."""
        self._producer = init_producer_id(router, transactional_id=self._transactional_id)
        self._sequence, self._may_have_open_transaction = 0, False

    def append(
        self, router: Router, partition: TopicPartition, records: Sequence[RecordBytes], now_ms: int
    ) -> None:
        """Append records as one transaction; returns when they count.

        1. After a failure: abort what was left open and take a new epoch. Not if another has
           claimed since.
        2. Join the partition, where brokers do not do that by themselves.
        3. Append.
        4. Commit.
        5. Wait for the marker: the commit is answered before it is written.
        """
        if self._producer is None:
            raise LeadershipLost("this worker has not claimed to write the configs: claim first")
        try:
            self._abort_open_transaction(router, self._producer)
            self._may_have_open_transaction = True
            end = self._append_in_transaction(router, partition, records, now_ms)
            self._may_have_open_transaction = False
        except RequestRefused as error:
            if ErrorCode(error.code).action in FENCED_ACTIONS:
                self._producer = None
                raise LeadershipLost(
                    f"{error}. Another worker has claimed to write the configs, or the claim is too"
                    " old: claim anew if this worker leads the group"
                ) from error
            raise
        _wait_until_stable(router, partition, end)

    def _abort_open_transaction(self, router: Router, present: ProducerIdAndEpoch) -> None:
        """Abort what may be open, then begin the sequence anew.

        The new epoch alone would abort it too, but brokers before 4.0 then take us for another.
        """
        if not self._may_have_open_transaction:
            return
        version = transaction_version(router)
        try:
            present = end_txn(
                router, self._transactional_id, present, commit=False, version=version
            )
        except RequestRefused as error:
            if error.code != ErrorCode.INVALID_TXN_STATE:  # nothing was open, or it is over
                raise
        self._producer = init_producer_id(
            router, transactional_id=self._transactional_id, present=present
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
    """Wait until no transaction is open before `end`, so that whoever reads on will see it all."""
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
                f"{partition}: a transaction before offset {end} stays open; look for its writer",
            )
        time.sleep(backoff.next_delay_s())

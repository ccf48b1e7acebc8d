"""Writing with a claim: each write is a transaction, and a new claim shuts the older ones out.

Connect's leaders write the config topic like this when `exactly.once.source.support` is preparing
or enabled, all with one transactional id, so that a leader that does not know yet that it was
replaced cannot write any more. Not for threads to share: whoever uses it holds a lock.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from sparkmirror.errors import ClusterTimeout, LeadershipLost, RequestRefused
from sparkmirror.mirror.records import RecordBytes
from sparkmirror.model import TopicPartition
from sparkmirror.store.keyed import batches_of
from sparkmirror.wire.append import append_batch
from sparkmirror.wire.backoff import Backoff
from sparkmirror.wire.codes import Action, Code
from sparkmirror.wire.forward import Producer, forward
from sparkmirror.wire.header import read_header
from sparkmirror.wire.offsets import LATEST, list_offsets
from sparkmirror.wire.peek import demand
from sparkmirror.wire.place import refusal
from sparkmirror.wire.producers import ProducerIdentity, init_producer_id
from sparkmirror.wire.records import Record, build
from sparkmirror.wire.routing import Router
from sparkmirror.wire.transactions import (
    EPOCH_RAISING,
    add_partitions,
    end_transaction,
    transaction_version,
)

STABLE_WITHIN_S = 30.0
LOST = frozenset({Action.FENCED, Action.TRANSACTION})
"""Another has claimed; or the coordinator has forgotten an id that was not used for long."""


class ExclusiveWriter:
    """The writing side of one partition under a transactional id."""

    def __init__(self, transactional_id: str) -> None:
        self._id = transactional_id
        self._identity: ProducerIdentity | None = None
        self._sequence = 0
        self._unsure = False
        """Whether a transaction may be open whose end we do not know."""

    def claim(self, router: Router) -> None:
        """Shut out everybody who claimed before."""
        self._identity = init_producer_id(router, transactional_id=self._id)
        self._sequence, self._unsure = 0, False

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
        if self._identity is None:
            raise LeadershipLost("this worker has not claimed to write the configs: claim first")
        try:
            self._renew_if_unsure(router, self._identity)
            self._unsure = True
            end = self._transact(router, partition, records, now_ms)
            self._unsure = False
        except RequestRefused as error:
            if Code(error.code).action in LOST:
                self._identity = None
                raise LeadershipLost(
                    f"{error}. Another worker has claimed to write the configs, or the claim is too"
                    " old: claim anew if this worker leads the group"
                ) from error
            raise
        _wait_until_stable(router, partition, end)

    def _renew_if_unsure(self, router: Router, present: ProducerIdentity) -> None:
        """Abort what may be open, then begin the sequence anew.

        The new epoch alone would abort it too, but brokers before 4.0 then take us for another.
        """
        if not self._unsure:
            return
        version = transaction_version(router)
        try:
            present = end_transaction(router, self._id, present, commit=False, version=version)
        except RequestRefused as error:
            if error.code != Code.INVALID_TXN_STATE:  # nothing was open, or it is over
                raise
        self._identity = init_producer_id(router, transactional_id=self._id, present=present)
        self._sequence = 0

    def _transact(
        self, router: Router, partition: TopicPartition, records: Sequence[RecordBytes], now_ms: int
    ) -> int:
        assert self._identity is not None
        version = transaction_version(router)
        if version < EPOCH_RAISING:
            code = add_partitions(router, self._id, self._identity, [partition])[partition]
            if code is not Code.NONE:
                raise refusal(router.client.cluster, "AddPartitionsToTxn", code, self._id)
        end = 0
        for batch in batches_of(records, now_ms):
            end = self._append(router, partition, batch)
        before = self._identity
        self._identity = end_transaction(
            router, self._id, self._identity, commit=True, version=version
        )
        if self._identity != before:
            self._sequence = 0
        return end

    def _append(self, router: Router, partition: TopicPartition, batch: Sequence[Record]) -> int:
        assert self._identity is not None
        view = memoryview(build([r._replace(offset=n) for n, r in enumerate(batch)]))
        producer = Producer(
            producer_id=self._identity.producer_id, epoch=self._identity.epoch, transactional=True
        )
        buffers = forward(read_header(view), view, producer, self._sequence)
        base = append_batch(router, partition, buffers, transactional_id=self._id)
        self._sequence += len(batch)
        return base + len(batch)


def _wait_until_stable(router: Router, partition: TopicPartition, end: int) -> None:
    """Wait until no transaction is open before `end`, so that whoever reads on will see it all."""
    deadline, backoff = time.monotonic() + STABLE_WITHIN_S, Backoff(first_s=0.005, longest_s=0.2)
    while True:
        code, listed = list_offsets(router, {partition: LATEST}, read_committed=True)[partition]
        demand(router, partition, code)
        assert listed is not None
        if listed.offset >= end:
            return
        if time.monotonic() > deadline:
            raise ClusterTimeout(
                router.client.cluster,
                f"{partition}: a transaction before offset {end} stays open; look for its writer",
            )
        time.sleep(backoff.pause_s())

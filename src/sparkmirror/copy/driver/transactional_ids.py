"""The transactional ids of a connector: who may commit, and how nobody else can any more.

    <group id>-<connector>-<task>        a task's, as Kafka Connect names them
    <group id>-<connector>-conductor     the conductor's own, for what it writes to the ledger

Taking an id aborts what was open under it and fences whoever had it: Java's workers and ours stop
one another. A conductor that begins takes its own id first, so that no earlier conductor can write
or hand out anything, and then every id that any task of the connector has had, whatever number of
tasks there is now; only then does what was committed not change any more. Later an id is taken when
its task is replaced or has failed, and before that the conductor makes sure that it still is the
only one.

Blocks; belongs to the conductor's thread.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from sparkmirror.backoff import Backoff
from sparkmirror.copy.committer import Committer
from sparkmirror.copy.delivery import transaction_timeout_for
from sparkmirror.copy.driver.fence import DriverFenced
from sparkmirror.copy.driver.hanging_transactions import find_hanging_transactions
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.ledger import LedgerEntry
from sparkmirror.copy.transactional_producer import TransactionalProducer
from sparkmirror.errors import RequestRefused, UnsupportedByBroker
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.header import NO_PRODUCER_ID
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.error_codes import ErrorAction, ErrorCode
from sparkmirror.wire.protocol.producer_ids import ProducerIdAndEpoch, init_producer_id
from sparkmirror.wire.protocol.response_errors import error_for_code
from sparkmirror.wire.protocol.transactions import (
    add_partitions_to_txn,
    end_txn,
    list_transactional_ids,
    transaction_version,
)

log = logging.getLogger(__name__)

CONDUCTOR = "conductor"
BACKOFF_RESET_S = 5.0
"""A task that has worked so long has overcome whatever made it fail before."""
NEVER = float("-inf")


@dataclass(slots=True)
class _TaskTransactionalId:
    """One task's id: when it was taken last, and the term that nobody has used yet."""

    fenced_at: float = NEVER
    producer_id: int = NO_PRODUCER_ID
    unused_producer: TransactionalProducer | None = None
    retry_at: float = NEVER
    backoff: Backoff = field(default_factory=lambda: Backoff(max_s=5.0))


class TransactionalIds:
    """Takes the ids of one connector and makes terms of them."""

    def __init__(self, router: Router, job: CopyJob) -> None:
        self._router = router
        self._job = job
        self._prefix = f"{job.group_id}-{job.connector}-"
        self._version = 0
        self._own_identity: ProducerIdAndEpoch | None = None
        self._task_ids: dict[int, _TaskTransactionalId] = {}

    def fence_all(self) -> None:
        """Make sure that nobody who came before can commit anything any more."""
        self._version = transaction_version(self._router)
        self._own_identity = self._init_producer(self._prefix + CONDUCTOR)
        for task in sorted(self._known_tasks()):
            self._fence_task(task)

    def acquire(self, task: int) -> TransactionalProducer | None:
        """A term for a task attempt; None if the task has failed so often that it must wait."""
        office = self._id_for_task(task)
        if office.unused_producer is None and not self.fence(task):
            return None
        term, office.unused_producer = office.unused_producer, None
        return term

    def fence(self, task: int) -> bool:
        """Take a task's id again; false if that was done a moment ago and must wait."""
        office, now = self._id_for_task(task), time.monotonic()
        if now < office.retry_at:
            return False
        self._check_not_fenced()
        if now - office.fenced_at > BACKOFF_RESET_S:
            office.backoff.reset()
        self._fence_task(task)
        office.retry_at = now + office.backoff.next_delay_s()
        return True

    def fenced_since(self, task: int, moment: float) -> bool:
        """Whether nobody who had the task's id at that moment can commit any more."""
        return self._id_for_task(task).fenced_at > moment

    def end_hanging_transactions(
        self, committed: Mapping[TopicPartition, int]
    ) -> frozenset[TopicPartition]:
        """End what hangs in remote partitions nobody writes to; return those where nothing does.

        `committed` says up to where each of them holds what was committed. A task that works under
        the id that something hangs under is fenced: it will get another term.
        """
        tasks = {office.producer_id: task for task, office in self._task_ids.items()}
        seen, hanging = find_hanging_transactions(self._router, committed, tasks)
        for partition, producer_id, start in hanging:
            if not self._end_hanging_one(
                tasks[producer_id], partition, start < committed[partition]
            ):
                seen -= {partition}
        return seen

    def _end_hanging_one(self, task: int, partition: TopicPartition, commit: bool) -> bool:
        office = self._id_for_task(task)
        if office.unused_producer is None and not self.fence(task):
            return False
        assert office.unused_producer is not None
        log.warning(
            "%s: a transaction of %s hangs; it is %s",
            partition,
            office.unused_producer.transactional_id,
            "committed" if commit else "aborted",
        )
        office.unused_producer = self._write_marker(
            office.unused_producer, partition, commit=commit
        )
        return True

    def write_entries(self, entries: Mapping[TopicPartition, LedgerEntry]) -> None:
        """Write to the offsets topic, in a transaction of the conductor's own."""
        own = self._check_not_fenced()
        term = self._make_producer(self._prefix + CONDUCTOR, own)
        with self._raise_driver_fenced():
            committer = Committer(self._router, term, self._job.settings.source_alias)
            self._own_identity = committer.commit(entries)

    def _check_not_fenced(self) -> ProducerIdAndEpoch:
        """Make sure that no other conductor has come since, and that nothing of ours is open."""
        assert self._own_identity is not None, "terms are begun first"
        with self._raise_driver_fenced():
            self._own_identity = self._init_producer(
                self._prefix + CONDUCTOR, present=self._own_identity
            )
        return self._own_identity

    def _fence_task(self, task: int) -> None:
        transactional_id = f"{self._prefix}{task}"
        office = self._id_for_task(task)
        office.fenced_at = time.monotonic()
        identity = self._init_producer(transactional_id)
        office.producer_id = identity.producer_id
        office.unused_producer = self._make_producer(transactional_id, identity)

    def _write_marker(
        self, term: TransactionalProducer, partition: TopicPartition, *, commit: bool
    ) -> TransactionalProducer:
        """Write a marker into one partition; return the term to go on with."""
        codes = add_partitions_to_txn(
            self._router, term.transactional_id, term.identity, [partition]
        )
        if codes[partition] is not ErrorCode.NONE:
            cluster = self._router.client.cluster
            raise error_for_code(cluster, "AddPartitionsToTxn", codes[partition], str(partition))
        identity = end_txn(
            self._router,
            term.transactional_id,
            term.identity,
            commit=commit,
            version=self._version,
        )
        return replace(term, identity=identity)

    def _known_tasks(self) -> set[int]:
        """Every task that the connector has, or had as far as anybody remembers."""
        tasks = set(range(max(len(self._job.tasks), self._job.previous_task_count)))
        try:
            known = list_transactional_ids(self._router)
        except UnsupportedByBroker as error:
            log.warning("%s: only tasks that are known here are fenced", error)
            return tasks
        numbers = {
            name.removeprefix(self._prefix) for name in known if name.startswith(self._prefix)
        }
        return tasks | {int(number) for number in numbers if number.isdecimal()}

    def _init_producer(
        self, transactional_id: str, present: ProducerIdAndEpoch | None = None
    ) -> ProducerIdAndEpoch:
        timeout_s = transaction_timeout_for(
            self._job.commit_interval_s, self._job.transaction_timeout_s
        )
        return init_producer_id(
            self._router,
            transactional_id=transactional_id,
            present=present,
            transaction_timeout_ms=int(timeout_s * 1000),
        )

    def _make_producer(
        self, transactional_id: str, identity: ProducerIdAndEpoch
    ) -> TransactionalProducer:
        return TransactionalProducer(
            transactional_id=transactional_id,
            identity=identity,
            transaction_version=self._version,
            connector=self._job.connector,
            offsets_topic=self._job.offsets_topic,
            commit_interval_s=self._job.commit_interval_s,
        )

    def _id_for_task(self, task: int) -> _TaskTransactionalId:
        return self._task_ids.setdefault(task, _TaskTransactionalId())

    @contextmanager
    def _raise_driver_fenced(self) -> Iterator[None]:
        try:
            yield
        except RequestRefused as error:
            if ErrorCode(error.code).action is not ErrorAction.FENCED:
                raise
            raise DriverFenced(
                self._router.client.cluster,
                f"another driver has taken over {self._prefix}{CONDUCTOR}; this one stops",
            ) from error

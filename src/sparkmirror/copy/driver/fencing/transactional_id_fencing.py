"""The transactional ids of a connector: which producer may commit, and how others are fenced.

    <group id>-<connector>-<task>        a task's id, named as Kafka Connect names it
    <group id>-<connector>-conductor-<task>   the conductor's, for what it writes to the ledger
                                              about the task's partitions
    <group id>-<connector>-conductor     what older versions used for all tasks; only fenced

InitProducerId for an id aborts its open transaction and fences the producer that had it: workers of
Java and of sparkmirror stop one another. A conductor that starts first fences the conductor ids, so
that no earlier conductor can write or grant anything, and then the task ids, whatever the number of
tasks is now. After that, committed offsets do not change any more. Later an id is fenced when its
task is replaced or has failed; before that the conductor checks that no other conductor has fenced
the conductor id of the task.

If several conductors share the connector, the two ids of a task are a lock on the entries that name
the task (`copy.ledger`):

    1  InitProducerId for the conductor id, then for the task id
    2  check that the conductor id is still this conductor's: otherwise begin again
    3  read the ledger: no other conductor can write these entries before step 4
    4  write an entry that names another task under the conductor id of the task that it names now;
       the broker refuses that if another conductor has begun with step 1 meanwhile

So a partition that moves to another task has one owner at every moment. A conductor fences its own
tasks, those that the connector no longer has, and those that guard an entry that it needs. A
conductor whose ids another one has fenced takes them back only while its worker is a member of its
group, and reads the ledger again: it may not be the owner of every partition any more.

Blocks; belongs to the conductor's thread.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace

from sparkmirror.backoff import Backoff
from sparkmirror.copy.delivery import transaction_timeout_for
from sparkmirror.copy.driver.fencing.fence import DriverFenced
from sparkmirror.copy.driver.fencing.hanging_transactions import find_hanging_transactions
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.ledger import LedgerEntry
from sparkmirror.copy.transaction_committer import TransactionCommitter
from sparkmirror.copy.transactional_producer_config import TransactionalProducer
from sparkmirror.errors import RequestRefused, UnsupportedByBroker
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.header import NO_PRODUCER_ID
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.error_code_exceptions import error_for_code
from sparkmirror.wire.protocol.error_codes import ErrorAction, ErrorCode
from sparkmirror.wire.protocol.producer_ids import ProducerIdAndEpoch, init_producer_id
from sparkmirror.wire.protocol.transactions import (
    add_partitions_to_txn,
    end_txn,
    list_transactional_ids,
    transaction_version,
)

log = logging.getLogger(__name__)

CONDUCTOR = "conductor"
BACKOFF_RESET_S = 5.0
"""A task that worked for this time gets a short backoff again."""
NEVER = float("-inf")


@dataclass(slots=True)
class _TaskTransactionalId:
    """One task's id: when it was last fenced, and the producer that no attempt has used yet."""

    fenced_at: float = NEVER
    producer_id: int = NO_PRODUCER_ID
    unused_producer: TransactionalProducer | None = None
    retry_at: float = NEVER
    backoff: Backoff = field(default_factory=lambda: Backoff(max_s=5.0))


class TransactionalIdFencing:
    """Fences the ids of one connector and makes producers for its tasks."""

    def __init__(self, router: Router, job: CopyJob) -> None:
        self._router = router
        self._job = job
        self._prefix = f"{job.group_id}-{job.connector}-"
        self._version = 0
        self._conductor_ids: dict[int, ProducerIdAndEpoch] = {}
        self._task_ids: dict[int, _TaskTransactionalId] = {}

    def fence_all(self, job: CopyJob) -> None:
        """Fence every conductor and task of an earlier driver, see `fenceable_tasks`.

        `job` is the present plan of the job.
        """
        self._version = transaction_version(self._router)
        self._init_producer(self._prefix + CONDUCTOR)
        self.fence_tasks(fenceable_tasks(self._known_tasks(job), job))

    def fence_tasks(self, tasks: Iterable[int]) -> None:
        """Fence the conductor and the producer of each task. The ledger must be read after it."""
        wanted = sorted(tasks)
        for task in wanted:
            self._conductor_ids[task] = self._init_producer(self._conductor_id(task))
        for task in wanted:
            self._fence_task(task)

    def has_fenced(self, task: int) -> bool:
        """Whether this conductor has fenced a task, and has not noticed another one since then."""
        return task in self._conductor_ids

    def acquire(self, task: int) -> TransactionalProducer | None:
        """Return a producer for a task attempt; None while the task must wait for its backoff."""
        task_id = self._id_for_task(task)
        if task_id.unused_producer is None and not self.fence(task):
            return None
        producer, task_id.unused_producer = task_id.unused_producer, None
        return producer

    def fence(self, task: int) -> bool:
        """Fence a task's id; False while the task must wait for its backoff."""
        task_id, now = self._id_for_task(task), time.monotonic()
        if now < task_id.retry_at:
            return False
        if now - task_id.fenced_at > BACKOFF_RESET_S:
            task_id.backoff.reset()
        if self.has_fenced(task):
            self._check_not_fenced(task)
            self._fence_task(task)
        else:
            self.fence_tasks([task])
        task_id.retry_at = now + task_id.backoff.next_delay_s()
        return True

    def fenced_since(self, task: int, moment: float) -> bool:
        """Whether the task's id was fenced after a moment: its owner then can commit no more."""
        return self._id_for_task(task).fenced_at > moment

    def end_hanging_transactions(
        self, committed: Mapping[TopicPartition, int]
    ) -> frozenset[TopicPartition]:
        """End hanging transactions in remote partitions; return the partitions without any.

        Requires that no task writes to the partitions. `committed` maps each partition to the
        target offset up to which it holds committed records. If the transaction belongs to the id
        of a running task, that task is fenced and gets a new producer.
        """
        tasks = {task_id.producer_id: task for task, task_id in self._task_ids.items()}
        clear, hanging = find_hanging_transactions(self._router, committed, tasks)
        for transaction in hanging:
            task, commit = tasks[transaction.producer_id], transaction.was_committed(committed)
            if not self._end_hanging_one(task, transaction.partition, commit):
                clear -= {transaction.partition}
        return clear

    def _end_hanging_one(self, task: int, partition: TopicPartition, commit: bool) -> bool:
        task_id = self._id_for_task(task)
        if task_id.unused_producer is None:
            if not self.fence(task):
                return False
            if self._job.is_shared:
                return False  # another conductor may have had the task: read the ledger first
        assert task_id.unused_producer is not None
        log.warning(
            "%s: a transaction of %s hangs: it is now %s",
            partition,
            task_id.unused_producer.transactional_id,
            "committed" if commit else "aborted",
        )
        with self._raise_driver_fenced(task) if self._job.is_shared else nullcontext():
            task_id.unused_producer = self._write_marker(
                task_id.unused_producer, partition, commit=commit
            )
        return True

    def write_entries(self, task: int, entries: Mapping[TopicPartition, LedgerEntry]) -> None:
        """Write entries of a task's partitions in a transaction of the conductor."""
        identity = self._check_not_fenced(task)
        producer = self._make_producer(self._conductor_id(task), identity)
        with self._raise_driver_fenced(task):
            committer = TransactionCommitter(
                self._router, producer, self._job.settings.source_alias
            )
            self._conductor_ids[task] = committer.commit(entries)

    def _check_not_fenced(self, task: int) -> ProducerIdAndEpoch:
        """Abort our open transaction; return the identity of the conductor id.

        Raises DriverFenced if another conductor fenced it: the task must be fenced again.
        """
        present = self._conductor_ids.get(task)
        if present is None:
            raise self._driver_fenced(task)
        with self._raise_driver_fenced(task):
            identity = self._init_producer(self._conductor_id(task), present=present)
        self._conductor_ids[task] = identity
        return identity

    def _conductor_id(self, task: int) -> str:
        return f"{self._prefix}{CONDUCTOR}-{task}"

    def _fence_task(self, task: int) -> None:
        transactional_id = f"{self._prefix}{task}"
        task_id = self._id_for_task(task)
        began_at = time.monotonic()
        identity = self._init_producer(transactional_id)
        if self._job.is_shared:
            self._check_not_fenced(task)
        task_id.fenced_at = began_at
        task_id.producer_id = identity.producer_id
        task_id.unused_producer = self._make_producer(transactional_id, identity)

    def _write_marker(
        self, producer: TransactionalProducer, partition: TopicPartition, *, commit: bool
    ) -> TransactionalProducer:
        """Write a marker into one partition; return the producer with its new epoch."""
        codes = add_partitions_to_txn(
            self._router, producer.transactional_id, producer.identity, [partition]
        )
        if codes[partition] is not ErrorCode.NONE:
            cluster = self._router.client.cluster
            raise error_for_code(cluster, "AddPartitionsToTxn", codes[partition], str(partition))
        identity = end_txn(
            self._router,
            producer.transactional_id,
            producer.identity,
            commit=commit,
            version=self._version,
        )
        return replace(producer, identity=identity)

    def _known_tasks(self, job: CopyJob) -> set[int]:
        """Every task that the connector has or had, as far as the job and the brokers know."""
        tasks = set(range(max(job.task_count, job.previous_task_count)))
        try:
            listed = list_transactional_ids(self._router)
        except UnsupportedByBroker as error:
            log.warning(
                "Connector %s: cannot list transactional ids (%s); fencing tasks %s only",
                job.connector,
                error,
                sorted(tasks),
            )
            listed = frozenset()
        numbers = {
            name.removeprefix(self._prefix).removeprefix(f"{CONDUCTOR}-")
            for name in listed
            if name.startswith(self._prefix)
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
            current=present,
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
    def _raise_driver_fenced(self, task: int) -> Iterator[None]:
        try:
            yield
        except RequestRefused as error:
            if ErrorCode(error.code).action is not ErrorAction.FENCED:
                raise
            if self._job.is_shared:
                self._conductor_ids.pop(task, None)
                self._id_for_task(task).unused_producer = None
            raise self._driver_fenced(task) from error

    def _driver_fenced(self, task: int) -> DriverFenced:
        return DriverFenced(
            self._router.client.cluster,
            f"another driver has taken over {self._conductor_id(task)}; this one stops",
        )


def fenceable_tasks(tasks: Iterable[int], job: CopyJob) -> set[int]:
    """Return which tasks a conductor fences when it starts.

    If several workers share the connector: those that the connector no longer has. It fences its
    own when it needs them; each other task belongs to the conductor of another worker. A job that
    follows one in exactly-once mode fences its own tasks at once.
    """
    if not job.is_shared:
        return set(tasks)
    own = set() if job.is_exactly_once else set(job.tasks)
    return {task for task in tasks if task in own or task >= job.task_count}

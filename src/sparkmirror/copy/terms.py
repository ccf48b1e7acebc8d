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

from sparkmirror.copy.committer import Committer
from sparkmirror.copy.delivery import timeout_for
from sparkmirror.copy.fence import Overtaken
from sparkmirror.copy.hanging import look_for_hanging
from sparkmirror.copy.job import Job
from sparkmirror.copy.ledger import Entry
from sparkmirror.copy.term import Term
from sparkmirror.errors import RequestRefused, UnsupportedByBroker
from sparkmirror.model import TopicPartition
from sparkmirror.wire.backoff import Backoff
from sparkmirror.wire.codes import Action, Code
from sparkmirror.wire.header import NO_PRODUCER
from sparkmirror.wire.place import refusal
from sparkmirror.wire.producers import ProducerIdentity, init_producer_id
from sparkmirror.wire.routing import Router
from sparkmirror.wire.transactions import (
    add_partitions,
    end_transaction,
    transaction_version,
    transactional_ids,
)

log = logging.getLogger(__name__)

CONDUCTOR = "conductor"
CALM_S = 5.0
"""A task that has worked so long has overcome whatever made it fail before."""
NEVER = float("-inf")


@dataclass(slots=True)
class _Office:
    """One task's id: when it was taken last, and the term that nobody has used yet."""

    taken_at: float = NEVER
    producer_id: int = NO_PRODUCER
    fresh: Term | None = None
    not_before: float = NEVER
    backoff: Backoff = field(default_factory=lambda: Backoff(longest_s=5.0))


class Terms:
    """Takes the ids of one connector and makes terms of them."""

    def __init__(self, router: Router, job: Job) -> None:
        self._router = router
        self._job = job
        self._prefix = f"{job.group_id}-{job.connector}-"
        self._version = 0
        self._own: ProducerIdentity | None = None
        self._offices: dict[int, _Office] = {}

    def begin(self) -> None:
        """Make sure that nobody who came before can commit anything any more."""
        self._version = transaction_version(self._router)
        self._own = self._take(self._prefix + CONDUCTOR)
        for task in sorted(self._tasks()):
            self._renew(task)

    def take(self, task: int) -> Term | None:
        """A term for a task attempt; None if the task has failed so often that it must wait."""
        office = self._office(task)
        if office.fresh is None and not self.renew(task):
            return None
        term, office.fresh = office.fresh, None
        return term

    def renew(self, task: int) -> bool:
        """Take a task's id again; false if that was done a moment ago and must wait."""
        office, now = self._office(task), time.monotonic()
        if now < office.not_before:
            return False
        self._stay()
        if now - office.taken_at > CALM_S:
            office.backoff.reset()
        self._renew(task)
        office.not_before = now + office.backoff.pause_s()
        return True

    def taken_since(self, task: int, moment: float) -> bool:
        """Whether nobody who had the task's id at that moment can commit any more."""
        return self._office(task).taken_at > moment

    def end_hanging(self, committed: Mapping[TopicPartition, int]) -> frozenset[TopicPartition]:
        """End what hangs in remote partitions nobody writes to; return those where nothing does.

        `committed` says up to where each of them holds what was committed. A task that works under
        the id that something hangs under is fenced: it will get another term.
        """
        tasks = {office.producer_id: task for task, office in self._offices.items()}
        seen, hanging = look_for_hanging(self._router, committed, tasks)
        for partition, producer_id, start in hanging:
            if not self._end_one(tasks[producer_id], partition, start < committed[partition]):
                seen -= {partition}
        return seen

    def _end_one(self, task: int, partition: TopicPartition, commit: bool) -> bool:
        office = self._office(task)
        if office.fresh is None and not self.renew(task):
            return False
        assert office.fresh is not None
        log.warning(
            "%s: a transaction of %s hangs; it is %s",
            partition,
            office.fresh.transactional_id,
            "committed" if commit else "aborted",
        )
        office.fresh = self._end(office.fresh, partition, commit=commit)
        return True

    def write(self, entries: Mapping[TopicPartition, Entry]) -> None:
        """Write to the offsets topic, in a transaction of the conductor's own."""
        own = self._stay()
        term = self._term(self._prefix + CONDUCTOR, own)
        with self._overtaken_if_fenced():
            committer = Committer(self._router, term, self._job.settings.source_alias)
            self._own = committer.commit(entries)

    def _stay(self) -> ProducerIdentity:
        """Make sure that no other conductor has come since, and that nothing of ours is open."""
        assert self._own is not None, "terms are begun first"
        with self._overtaken_if_fenced():
            self._own = self._take(self._prefix + CONDUCTOR, present=self._own)
        return self._own

    def _renew(self, task: int) -> None:
        transactional_id = f"{self._prefix}{task}"
        office = self._office(task)
        office.taken_at = time.monotonic()
        identity = self._take(transactional_id)
        office.producer_id = identity.producer_id
        office.fresh = self._term(transactional_id, identity)

    def _end(self, term: Term, partition: TopicPartition, *, commit: bool) -> Term:
        """Write a marker into one partition; return the term to go on with."""
        codes = add_partitions(self._router, term.transactional_id, term.identity, [partition])
        if codes[partition] is not Code.NONE:
            cluster = self._router.client.cluster
            raise refusal(cluster, "AddPartitionsToTxn", codes[partition], str(partition))
        identity = end_transaction(
            self._router,
            term.transactional_id,
            term.identity,
            commit=commit,
            version=self._version,
        )
        return replace(term, identity=identity)

    def _tasks(self) -> set[int]:
        """Every task that the connector has, or had as far as anybody remembers."""
        tasks = set(range(max(len(self._job.tasks), self._job.tasks_before)))
        try:
            known = transactional_ids(self._router)
        except UnsupportedByBroker as error:
            log.warning("%s: only tasks that are known here are fenced", error)
            return tasks
        numbers = {
            name.removeprefix(self._prefix) for name in known if name.startswith(self._prefix)
        }
        return tasks | {int(number) for number in numbers if number.isdecimal()}

    def _take(
        self, transactional_id: str, present: ProducerIdentity | None = None
    ) -> ProducerIdentity:
        timeout_s = timeout_for(self._job.commit_every_s, self._job.transaction_timeout_s)
        return init_producer_id(
            self._router,
            transactional_id=transactional_id,
            present=present,
            transaction_timeout_ms=int(timeout_s * 1000),
        )

    def _term(self, transactional_id: str, identity: ProducerIdentity) -> Term:
        return Term(
            transactional_id=transactional_id,
            identity=identity,
            version=self._version,
            connector=self._job.connector,
            offsets_topic=self._job.offsets_topic,
            commit_every_s=self._job.commit_every_s,
        )

    def _office(self, task: int) -> _Office:
        return self._offices.setdefault(task, _Office())

    @contextmanager
    def _overtaken_if_fenced(self) -> Iterator[None]:
        try:
            yield
        except RequestRefused as error:
            if Code(error.code).action is not Action.FENCED:
                raise
            raise Overtaken(
                self._router.client.cluster,
                f"another driver has taken over {self._prefix}{CONDUCTOR}; this one stops",
            ) from error

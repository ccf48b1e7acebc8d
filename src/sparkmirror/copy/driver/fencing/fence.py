"""The fence: after it, no earlier owner can append to a partition, however long it was suspended.

A fence is an empty transaction: the partitions are added to it and it is aborted. The coordinator
then writes a marker with a higher producer epoch into each partition, and the leader refuses every
plain batch of the old epoch. A fence costs one target offset per partition. It is made only when a
lease did not end cleanly.

    target log   ... the old owner's last batch | marker (epoch + 1) | the new owner: sequence 0
                                                  `-- everything of the old owner lies before it

Rules, each observed on a broker:
    - the answer to the abort comes before the markers: wait until the coordinator reports the end.
      Brokers before 3.0 do not report it. Such a coordinator refuses a second abort while markers
      are missing, and accepts it afterwards without effect
    - a broker may complete a transaction without the marker of a partition that has no leader at
      that moment. Such partitions are left out, and every marker is confirmed: it must lie at the
      end of the log, with our producer id and the new epoch, and only batches of other producers
      may follow it. If the log cannot be read now, the marker is searched later, and no second
      fence is made
    - one partition that cannot be added keeps all others out: leave it out and try again
    - several transactional ids share the partitions, so that one blocked transaction does not
      block every takeover. Their coordinators write markers at the same time: every transaction is
      aborted before the end of the first one is awaited, and all markers are confirmed together
    - conductors of several workers use the same ids. Each InitProducerId refuses the fence that
      another conductor is making at that moment; that one begins again, as long as its worker is a
      member of its group. Their partitions are different, so no fence undoes another one

If the principal may not use transactional ids, or the target has no transactions, there is no
fence, only a plain producer id. If the target has no producer ids either, or refuses them, batches
are appended without one (`producer_support`).

`PartitionFencer` talks to the brokers. The decisions are pure functions: `fence_id_for`,
`partitions_to_leave_out`. `fence_markers` confirms the markers.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from sparkmirror.backoff import Backoff
from sparkmirror.copy.driver.fencing.fence_markers import find_markers
from sparkmirror.copy.driver.fencing.producer_support import (
    ProducerSupport,
    producer_support,
    support_after_refusal,
)
from sparkmirror.copy.driver.sharing.worker_group_membership import GroupMembership
from sparkmirror.copy.lease import NOT_IDEMPOTENT
from sparkmirror.errors import (
    ClusterError,
    ClusterTimeout,
    NotAuthorized,
    RequestRefused,
    UnsupportedByBroker,
)
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.header import NO_EPOCH
from sparkmirror.wire.net.routing import AnyBroker, CoordinatorType, Router
from sparkmirror.wire.protocol.error_codes import ErrorAction, ErrorCode
from sparkmirror.wire.protocol.producer_ids import ProducerIdAndEpoch, init_producer_id
from sparkmirror.wire.protocol.transactions import (
    EPOCH_BUMPING_VERSION,
    add_partitions_to_txn,
    describe_transactions,
    end_txn,
    transaction_version,
)

T = TypeVar("T")

NOT_IDEMPOTENT_PRODUCER = ProducerIdAndEpoch(NOT_IDEMPOTENT, NO_EPOCH)
"""Stands for the producer of batches without a producer id."""
FENCE_IDS = 8
END_TIMEOUT_S = 30.0
POLL_INTERVAL_S = 0.01
MAX_ATTEMPTS = 10
"""How often a fence begins again because another conductor took its id."""


class NoTransactions(UnsupportedByBroker):
    """The target has no transactions, so there is no fence. Raised before any request is sent."""


class DriverFenced(ClusterError):
    """Another driver uses the fence ids now; this one must stop."""


@dataclass(frozen=True, slots=True)
class LogEnd:
    """Where the log of a remote partition ends, and the identity that its fence gave, if any.

    With an identity, only that identity can append. Without one there is no fence: the old identity
    continues, and the log may still grow.
    """

    identity: ProducerIdAndEpoch | None
    end_offset: int
    has_marker_at_end: bool = False
    """Whether the marker is known to be the last batch of the log."""

    @property
    def end_of_batches(self) -> int:
        """Where to search the last batch of the old owner: before a marker at the end."""
        return self.end_offset - (1 if self.has_marker_at_end else 0)

    @property
    def end_before_fence(self) -> int:
        """Where the log ended before the marker of the fence was written."""
        return self.end_offset - (1 if self.identity else 0)


@dataclass(frozen=True, slots=True)
class _Fence:
    """A fence: the identity of its transaction, and the identity after the abort."""

    old_identity: ProducerIdAndEpoch
    new_identity: ProducerIdAndEpoch


@dataclass(frozen=True, slots=True)
class _EmptyTransaction:
    """An empty transaction that was aborted; its fence is None if no partition could be added."""

    fence: _Fence | None
    added: set[TopicPartition]
    left_out: dict[TopicPartition, ErrorCode]


class PartitionFencer:
    """Fences partitions with the fence ids of one connector, which only the driver uses.

    Blocks; belongs to the conductor's thread.
    """

    def __init__(
        self, router: Router, prefix: str, membership: GroupMembership | None = None
    ) -> None:
        """Without a membership no other conductor may use the ids."""
        self._membership = membership or GroupMembership(is_required=False)
        self._router = router
        self._prefix = prefix
        self._identities: dict[str, ProducerIdAndEpoch] = {}
        self._unfenced_identity: ProducerIdAndEpoch | None = None
        self._unconfirmed: dict[TopicPartition, _Fence] = {}
        self._version = 0
        self._support: ProducerSupport | None = None
        self._forbidden_ids: set[str] = set()
        """The fence ids that the principal may not use."""

    @property
    def support(self) -> ProducerSupport:
        """What the target supports; asks a broker the first time."""
        if self._support is None:
            versions = self._router.connection_to(AnyBroker()).api_versions
            self._support = producer_support(versions)
        return self._support

    @property
    def known_support(self) -> ProducerSupport:
        """What the target supports as far as it is known now; asks no broker."""
        return self._support or ProducerSupport()

    def may_fence(self, partition: TopicPartition) -> bool:
        """Whether a fence stops owners of a partition, as far as known now.

        Asks no broker; any thread may call it.
        """
        is_allowed = fence_id_for(self._prefix, partition) not in self._forbidden_ids
        return is_allowed and self.known_support.has_transactions

    @property
    def is_idempotent(self) -> bool:
        """Whether the target has producer ids, as far as known now."""
        return self.support.has_producer_ids

    def identity_for(self, partition: TopicPartition) -> ProducerIdAndEpoch:
        """Return the identity for the first lease of a partition."""
        if identity := self._transactional_identity(partition):
            return identity
        self._unfenced_identity = self._unfenced_identity or self.new_unfenced_identity()
        return self._unfenced_identity

    def fenceable_producer_id(self, partition: TopicPartition) -> int | None:
        """Return the producer id that a fence of the partition stops; None if there is no fence.

        A producer id without a transactional id is never one: no fence raises its epoch.
        """
        identity = self._transactional_identity(partition)
        return identity.producer_id if identity else None

    def _transactional_identity(self, partition: TopicPartition) -> ProducerIdAndEpoch | None:
        """The identity of the partition's fence id; None if the target or a right lacks it."""
        if self.support.has_transactions:
            fence_id = fence_id_for(self._prefix, partition)
            try:
                identity = self._identity(fence_id)
            except NotAuthorized:
                self._forbidden_ids.add(fence_id)
            except (RequestRefused, UnsupportedByBroker) as error:
                self._support = support_after_refusal(self.support, error, is_transactional=True)
            else:
                self._forbidden_ids.discard(fence_id)
                return identity
        return None

    def new_unfenced_identity(self) -> ProducerIdAndEpoch:
        """Return a new identity that can neither fence nor be fenced."""
        if self.support.has_producer_ids:
            try:
                return init_producer_id(self._router)
            except (RequestRefused, UnsupportedByBroker) as error:
                self._support = support_after_refusal(self.support, error, is_transactional=False)
        return NOT_IDEMPOTENT_PRODUCER

    def fence(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, LogEnd | ErrorCode]:
        """Fence partitions; for each one returns the fence, or the code that prevented it.

        Raises NoTransactions, and NotAuthorized if the principal may not use transactional ids.
        """
        if not self.support.has_transactions:
            raise NoTransactions(self._router.client.cluster, self.support.missing_feature)
        by_id: dict[str, set[TopicPartition]] = {}
        outcomes: dict[TopicPartition, LogEnd | ErrorCode] = {}
        fences: dict[TopicPartition, _Fence] = {}
        wanted = set(partitions)
        known = self._router.refresh({partition.topic for partition in wanted})
        for partition in wanted:
            if known.leader_node(partition) is None:
                outcomes[partition] = ErrorCode.LEADER_NOT_AVAILABLE
            elif partition in self._unconfirmed:
                fences[partition] = self._unconfirmed[partition]
            else:
                fence_id = fence_id_for(self._prefix, partition)
                by_id.setdefault(fence_id, set()).add(partition)
        for ended in self._end_transactions(by_id):
            outcomes |= ended.left_out
            if ended.fence:
                fences |= dict.fromkeys(ended.added, ended.fence)
        return outcomes | self._confirm_markers(fences)

    def _end_transactions(
        self, by_id: Mapping[str, set[TopicPartition]]
    ) -> list[_EmptyTransaction]:
        """Make an empty transaction with each fence id; return them when all have ended.

        Begins again with an id that another conductor takes.
        """
        ended: dict[str, _EmptyTransaction] = {}
        backoff = Backoff(initial_s=0.02, max_s=0.5)
        for _ in range(MAX_ATTEMPTS):
            left = {fence_id: group for fence_id, group in by_id.items() if fence_id not in ended}
            aborted = self._try_each(left, self._abort_empty)
            ended |= self._await_markers(aborted)
            if len(ended) == len(by_id):
                return list(ended.values())
            time.sleep(backoff.next_delay_s())
        taken = ", ".join(sorted(by_id.keys() - ended.keys()))
        raise ClusterTimeout(
            self._router.client.cluster,
            f"other workers have used the fence {taken} {MAX_ATTEMPTS} times meanwhile",
        )

    def _try_each(
        self, by_id: Mapping[str, T], step: Callable[[str, T], _EmptyTransaction]
    ) -> dict[str, _EmptyTransaction]:
        """Do a step for each id. Leaves out ids that another conductor has taken meanwhile."""
        done: dict[str, _EmptyTransaction] = {}
        for fence_id, argument in by_id.items():
            try:
                done[fence_id] = step(fence_id, argument)
            except DriverFenced:
                if not self._membership.is_required or not self._membership.is_valid():
                    raise
                del self._identities[fence_id]
        return done

    def _abort_empty(self, fence_id: str, partitions: set[TopicPartition]) -> _EmptyTransaction:
        """Add partitions to a transaction and abort it; its markers may be written later."""
        identity = self._identity(fence_id)
        if self._version < EPOCH_BUMPING_VERSION:
            identity = self._init_producer(fence_id)
        added, left_out = self._add_partitions(fence_id, identity, partitions)
        fence = _Fence(identity, self._abort(fence_id, identity)) if added else None
        return _EmptyTransaction(fence, added, left_out)

    def _await_markers(
        self, aborted: Mapping[str, _EmptyTransaction]
    ) -> dict[str, _EmptyTransaction]:
        """Return aborted transactions when their markers are written."""
        try:
            self._await_ends({fence_id for fence_id, one in aborted.items() if one.fence})
        except UnsupportedByBroker:
            return self._try_each(aborted, self._abort_again)
        return dict(aborted)

    def _abort_again(self, fence_id: str, aborted: _EmptyTransaction) -> _EmptyTransaction:
        """Return an aborted transaction when a second abort is accepted: the first one is done."""
        if aborted.fence:
            self._abort(fence_id, aborted.fence.old_identity)
        return aborted

    def _add_partitions(
        self, fence_id: str, identity: ProducerIdAndEpoch, partitions: set[TopicPartition]
    ) -> tuple[set[TopicPartition], dict[TopicPartition, ErrorCode]]:
        """Add the partitions that can be added; returns them, and the codes of the others."""
        left_out: dict[TopicPartition, ErrorCode] = {}
        wanted = set(partitions)
        while wanted:
            codes = add_partitions_to_txn(self._router, fence_id, identity, wanted)
            refused = partitions_to_leave_out(codes)
            if not refused:
                return wanted, left_out
            if any(code.action is ErrorAction.FENCED for code in codes.values()):
                raise self._driver_fenced(fence_id)
            left_out |= refused
            wanted -= set(left_out)
        return wanted, left_out

    def _abort(self, fence_id: str, identity: ProducerIdAndEpoch) -> ProducerIdAndEpoch:
        try:
            after = end_txn(self._router, fence_id, identity, commit=False, version=self._version)
        except RequestRefused as error:
            if ErrorCode(error.code).action is ErrorAction.FENCED:
                raise self._driver_fenced(fence_id) from error
            raise
        self._identities[fence_id] = after
        return after

    def _await_ends(self, fence_ids: set[str]) -> None:
        deadline = time.monotonic() + END_TIMEOUT_S
        left = set(fence_ids)
        while left:
            states = describe_transactions(self._router, left)
            ended = {fence_id for fence_id, one in states.items() if not one or one.is_complete}
            left -= ended
            if left and time.monotonic() > deadline:
                raise ClusterTimeout(
                    self._router.client.cluster,
                    f"the fence {min(left)} has not ended after {END_TIMEOUT_S:.0f} s; a partition"
                    " of the target may have no leader",
                )
            if left:
                time.sleep(POLL_INTERVAL_S)

    def _confirm_markers(
        self, fences: Mapping[TopicPartition, _Fence]
    ) -> dict[TopicPartition, LogEnd | ErrorCode]:
        """Search the marker in each partition: only a partition that has it is fenced."""
        outcomes: dict[TopicPartition, LogEnd | ErrorCode] = {}
        identities = {partition: fence.old_identity for partition, fence in fences.items()}
        searches = find_markers(self._router, identities, self._version) if fences else {}
        for partition, found in searches.items():
            fence = fences[partition]
            if found.has_marker is None:
                self._unconfirmed[partition] = fence
            else:
                self._unconfirmed.pop(partition, None)
            outcomes[partition] = (
                LogEnd(fence.new_identity, found.end_offset, found.is_at_end)
                if found.has_marker
                else found.code
            )
        return outcomes

    def _identity(self, fence_id: str) -> ProducerIdAndEpoch:
        if fence_id not in self._identities:
            self._version = transaction_version(self._router)
            all_ids = [_fence_id(self._prefix, number) for number in range(FENCE_IDS)]
            self._router.find_coordinators(CoordinatorType.TRANSACTION, all_ids)
            return self._init_producer(fence_id)
        return self._identities[fence_id]

    def _init_producer(self, fence_id: str) -> ProducerIdAndEpoch:
        identity = init_producer_id(self._router, transactional_id=fence_id)
        self._identities[fence_id] = identity
        return identity

    def _driver_fenced(self, fence_id: str) -> DriverFenced:
        return DriverFenced(
            self._router.client.cluster,
            f"another driver has taken over the fence {fence_id}; this one stops",
        )


def fence_id_for(prefix: str, partition: TopicPartition) -> str:
    """Return the transactional id that fences a partition: the same one in every driver."""
    return _fence_id(prefix, zlib.crc32(str(partition).encode()) % FENCE_IDS)


def _fence_id(prefix: str, number: int) -> str:
    return f"{prefix}-fence-{number}"


def partitions_to_leave_out(
    codes: Mapping[TopicPartition, ErrorCode],
) -> dict[TopicPartition, ErrorCode]:
    """Return the partitions that keep the others out of a transaction, with their codes.

    The broker adds all partitions or none: it answers OPERATION_NOT_ATTEMPTED for those that could
    be added. If it gives that code alone, no partition can be added.
    """
    refused: dict[TopicPartition, ErrorCode] = {}
    causes: dict[TopicPartition, ErrorCode] = {}
    for partition, code in codes.items():
        if code is not ErrorCode.NONE:
            refused[partition] = code
            if code is not ErrorCode.OPERATION_NOT_ATTEMPTED:
                causes[partition] = code
    return causes or refused

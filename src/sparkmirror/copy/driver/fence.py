"""The fence: after it, no earlier owner can append to a partition, however long it slept.

A fence is an empty transaction: partitions join it and it is aborted. The coordinator then writes a
marker with a raised producer epoch into each partition, and every plain batch of the old epoch is
refused from then on. It costs one target offset per partition, and is made only when a lease did
not end cleanly.

    target log   ... the old owner's last batch | marker (epoch + 1) | the new owner: sequence 0
                                                  `-- before it lies all that the old owner did

Rules, each learned from a broker:
    - the answer to the abort comes before the markers: wait until the coordinator says it is over
    - a broker may complete a transaction without the marker of a partition that has no leader just
      then: such partitions are left out, and every marker is confirmed: it must lie at the end of
      the log, ours, with the new epoch, with nothing behind it but what others wrote. Where one
      cannot be looked for now, it is looked for later, and no second one is made
    - one partition that cannot join keeps all others out: leave it out and try again
    - several ids share the partitions, so that one blocked transaction does not block every
      takeover

Where transactional ids are forbidden there is no fence, only a plain producer id.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

from sparkmirror.errors import ClusterError, ClusterTimeout, NotAuthorized, RequestRefused
from sparkmirror.model import TopicPartition
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.error_codes import ErrorAction, ErrorCode
from sparkmirror.wire.protocol.offsets import LATEST, list_offsets
from sparkmirror.wire.protocol.producer_ids import ProducerIdAndEpoch, init_producer_id
from sparkmirror.wire.protocol.single_fetch import fetch_batch_at
from sparkmirror.wire.protocol.transactions import (
    EPOCH_BUMPING_VERSION,
    add_partitions_to_txn,
    describe_transaction,
    end_txn,
    transaction_version,
)

FENCE_IDS = 8
END_TIMEOUT_S = 30.0
POLL_INTERVAL_S = 0.01
CONFIRM_TIMEOUT_S = 10.0
MAX_BATCHES_BACK = 100
"""Batches that others may have written behind a marker before it was looked for."""


class DriverFenced(ClusterError):
    """Another driver holds the fence ids now; this one must stop."""


@dataclass(frozen=True, slots=True)
class FencedPartition:
    """A partition that only the new identity can append to, and where its log ends.

    Without an identity there is no fence: the old identity goes on.
    """

    identity: ProducerIdAndEpoch | None
    end_offset: int


@dataclass(frozen=True, slots=True)
class _Fence:
    """A fence that was raised: under which identity partitions joined, and which one it gave."""

    old_identity: ProducerIdAndEpoch
    new_identity: ProducerIdAndEpoch


class PartitionFencer:
    """The fence ids of one connector. They belong to the driver; tasks never see them."""

    def __init__(self, router: Router, prefix: str, count: int = FENCE_IDS) -> None:
        self._router = router
        self._prefix = prefix
        self._count = count
        self._identities: dict[str, ProducerIdAndEpoch] = {}
        self._unfenced_identity: ProducerIdAndEpoch | None = None
        self._unconfirmed: dict[TopicPartition, _Fence] = {}
        self._version = 0

    def identity_for(self, partition: TopicPartition) -> ProducerIdAndEpoch:
        """The identity under which a partition that nobody wrote to before may be written."""
        try:
            return self._identity(self._fence_id(partition))
        except NotAuthorized:
            self._unfenced_identity = self._unfenced_identity or self.new_unfenced_identity()
            return self._unfenced_identity

    def new_unfenced_identity(self) -> ProducerIdAndEpoch:
        """A new identity that can neither fence nor be fenced."""
        return init_producer_id(self._router)

    def fence(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, FencedPartition | ErrorCode]:
        """Fence partitions; each one is fenced for sure, or there is a code that says why not."""
        by_id: dict[str, set[TopicPartition]] = {}
        outcomes: dict[TopicPartition, FencedPartition | ErrorCode] = {}
        wanted = set(partitions)
        known = self._router.refresh({partition.topic for partition in wanted})
        for partition in wanted:
            if known.leader_node(partition) is None:
                outcomes[partition] = ErrorCode.LEADER_NOT_AVAILABLE
            elif partition in self._unconfirmed:
                outcomes |= self._confirm_markers({partition}, self._unconfirmed.pop(partition))
            else:
                by_id.setdefault(self._fence_id(partition), set()).add(partition)
        for fence_id, group in by_id.items():
            outcomes |= self._fence_group(fence_id, group)
        return outcomes

    def _fence_group(
        self, fence_id: str, partitions: set[TopicPartition]
    ) -> dict[TopicPartition, FencedPartition | ErrorCode]:
        identity = self._identity(fence_id)
        if self._version < EPOCH_BUMPING_VERSION:
            identity = self._init_producer(fence_id)
        joined, outcomes = self._add_partitions(fence_id, identity, partitions)
        if not joined:
            return dict(outcomes)
        raised = _Fence(identity, self._abort(fence_id, identity))
        self._await_end(fence_id)
        return {**outcomes, **self._confirm_markers(joined, raised)}

    def _add_partitions(
        self, fence_id: str, identity: ProducerIdAndEpoch, partitions: set[TopicPartition]
    ) -> tuple[set[TopicPartition], dict[TopicPartition, ErrorCode]]:
        """Join as many partitions as can; those that cannot keep their code."""
        left_out: dict[TopicPartition, ErrorCode] = {}
        wanted = set(partitions)
        while wanted:
            codes = add_partitions_to_txn(self._router, fence_id, identity, wanted)
            refused = {p: c for p, c in codes.items() if c is not ErrorCode.NONE}
            if not refused:
                return wanted, left_out
            if any(code.action is ErrorAction.FENCED for code in refused.values()):
                raise self._driver_fenced(fence_id)
            bad = {p: c for p, c in refused.items() if c is not ErrorCode.OPERATION_NOT_ATTEMPTED}
            left_out |= bad or refused
            wanted -= set(left_out)
        return wanted, left_out

    def _abort(self, fence_id: str, identity: ProducerIdAndEpoch) -> ProducerIdAndEpoch:
        try:
            raised = end_txn(self._router, fence_id, identity, commit=False, version=self._version)
        except RequestRefused as error:
            if ErrorCode(error.code).action is ErrorAction.FENCED:
                raise self._driver_fenced(fence_id) from error
            raise
        self._identities[fence_id] = raised
        return raised

    def _await_end(self, fence_id: str) -> None:
        deadline = time.monotonic() + END_TIMEOUT_S
        while True:
            state = describe_transaction(self._router, fence_id)
            if state is None or state.is_complete:
                return
            if time.monotonic() > deadline:
                raise ClusterTimeout(
                    self._router.client.cluster,
                    f"the fence {fence_id} is not over after {END_TIMEOUT_S:.0f} s; a partition"
                    " of the target may have no leader",
                )
            time.sleep(POLL_INTERVAL_S)

    def _confirm_markers(
        self, joined: set[TopicPartition], raised: _Fence
    ) -> dict[TopicPartition, FencedPartition | ErrorCode]:
        """Look for the marker in each partition: only those that have it are fenced."""
        ends = list_offsets(
            self._router, dict.fromkeys(joined, LATEST), timeout_s=CONFIRM_TIMEOUT_S
        )
        outcomes: dict[TopicPartition, FencedPartition | ErrorCode] = {}
        for partition, (code, listed) in ends.items():
            marked: bool | None = None
            if listed is not None and code is ErrorCode.NONE:
                marked, code = self._find_marker(partition, listed.offset, raised.old_identity)
            if marked is None:
                self._unconfirmed[partition] = raised
            fenced = (
                FencedPartition(raised.new_identity, listed.offset) if marked and listed else None
            )
            outcomes[partition] = fenced or code
        return outcomes

    def _find_marker(
        self, partition: TopicPartition, end: int, joined_as: ProducerIdAndEpoch
    ) -> tuple[bool | None, ErrorCode]:
        """Whether the marker is there; None if the log cannot be read now, with the reason."""
        try:
            return self._has_marker(partition, end, joined_as), ErrorCode.LEADER_NOT_AVAILABLE
        except NotAuthorized:
            return None, ErrorCode.TOPIC_AUTHORIZATION_FAILED
        except ClusterError:
            return None, ErrorCode.LEADER_NOT_AVAILABLE

    def _has_marker(
        self, partition: TopicPartition, end: int, joined_as: ProducerIdAndEpoch
    ) -> bool:
        """Whether the marker of this fence lies at the end, with nothing of ours behind it.

        Where an abort raises the epoch, so does its marker; otherwise the identity was new.
        """
        least = joined_as.epoch + (1 if self._version >= EPOCH_BUMPING_VERSION else 0)
        at = end
        for _ in range(MAX_BATCHES_BACK):
            header, _ = fetch_batch_at(self._router, partition, at - 1)
            if header.producer_id == joined_as.producer_id:
                return header.is_control and header.producer_epoch >= least
            at = header.base_offset
        return False

    def _identity(self, fence_id: str) -> ProducerIdAndEpoch:
        if fence_id not in self._identities:
            self._version = transaction_version(self._router)
            return self._init_producer(fence_id)
        return self._identities[fence_id]

    def _init_producer(self, fence_id: str) -> ProducerIdAndEpoch:
        identity = init_producer_id(self._router, transactional_id=fence_id)
        self._identities[fence_id] = identity
        return identity

    def _fence_id(self, partition: TopicPartition) -> str:
        number = zlib.crc32(str(partition).encode()) % self._count
        return f"{self._prefix}-fence-{number}"

    def _driver_fenced(self, fence_id: str) -> DriverFenced:
        return DriverFenced(
            self._router.client.cluster,
            f"another driver has taken over the fence {fence_id}; this one stops",
        )

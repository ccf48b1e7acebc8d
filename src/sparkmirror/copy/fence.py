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
from sparkmirror.wire.codes import Action, Code
from sparkmirror.wire.offsets import LATEST, list_offsets
from sparkmirror.wire.peek import batch_at
from sparkmirror.wire.producers import ProducerIdentity, init_producer_id
from sparkmirror.wire.routing import Router
from sparkmirror.wire.transactions import (
    EPOCH_RAISING,
    add_partitions,
    describe_transaction,
    end_transaction,
    transaction_version,
)

FENCE_IDS = 8
OVER_WITHIN_S = 30.0
LOOK_EVERY_S = 0.01
CONFIRMED_WITHIN_S = 10.0
FARTHEST_BACK = 100
"""Batches that others may have written behind a marker before it was looked for."""


class Overtaken(ClusterError):
    """Another driver holds the fence ids now; this one must stop."""


@dataclass(frozen=True, slots=True)
class Fenced:
    """A partition that only the new identity can append to, and where its log ends.

    Without an identity there is no fence: the old identity goes on.
    """

    identity: ProducerIdentity | None
    end: int


@dataclass(frozen=True, slots=True)
class _Raised:
    """A fence that was raised: under which identity partitions joined, and which one it gave."""

    joined_as: ProducerIdentity
    given: ProducerIdentity


class Fences:
    """The fence ids of one connector. They belong to the driver; tasks never see them."""

    def __init__(self, router: Router, prefix: str, count: int = FENCE_IDS) -> None:
        self._router = router
        self._prefix = prefix
        self._count = count
        self._identities: dict[str, ProducerIdentity] = {}
        self._plain: ProducerIdentity | None = None
        self._unconfirmed: dict[TopicPartition, _Raised] = {}
        self._version = 0

    def identity_for(self, partition: TopicPartition) -> ProducerIdentity:
        """The identity under which a partition that nobody wrote to before may be written."""
        try:
            return self._identity(self._id_of(partition))
        except NotAuthorized:
            self._plain = self._plain or self.plain_identity()
            return self._plain

    def plain_identity(self) -> ProducerIdentity:
        """A new identity that can neither fence nor be fenced."""
        return init_producer_id(self._router)

    def raise_fence(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, Fenced | Code]:
        """Fence partitions; each one is fenced for sure, or there is a code that says why not."""
        by_id: dict[str, set[TopicPartition]] = {}
        outcomes: dict[TopicPartition, Fenced | Code] = {}
        wanted = set(partitions)
        known = self._router.refresh({partition.topic for partition in wanted})
        for partition in wanted:
            if known.broker_of(partition) is None:
                outcomes[partition] = Code.LEADER_NOT_AVAILABLE
            elif partition in self._unconfirmed:
                outcomes |= self._confirm({partition}, self._unconfirmed.pop(partition))
            else:
                by_id.setdefault(self._id_of(partition), set()).add(partition)
        for fence_id, group in by_id.items():
            outcomes |= self._fence(fence_id, group)
        return outcomes

    def _fence(
        self, fence_id: str, partitions: set[TopicPartition]
    ) -> dict[TopicPartition, Fenced | Code]:
        identity = self._identity(fence_id)
        if self._version < EPOCH_RAISING:
            identity = self._renew(fence_id)
        joined, outcomes = self._join(fence_id, identity, partitions)
        if not joined:
            return dict(outcomes)
        raised = _Raised(identity, self._abort(fence_id, identity))
        self._wait_until_over(fence_id)
        return {**outcomes, **self._confirm(joined, raised)}

    def _join(
        self, fence_id: str, identity: ProducerIdentity, partitions: set[TopicPartition]
    ) -> tuple[set[TopicPartition], dict[TopicPartition, Code]]:
        """Join as many partitions as can; those that cannot keep their code."""
        left_out: dict[TopicPartition, Code] = {}
        wanted = set(partitions)
        while wanted:
            codes = add_partitions(self._router, fence_id, identity, wanted)
            refused = {p: c for p, c in codes.items() if c is not Code.NONE}
            if not refused:
                return wanted, left_out
            if any(code.action is Action.FENCED for code in refused.values()):
                raise self._overtaken(fence_id)
            bad = {p: c for p, c in refused.items() if c is not Code.OPERATION_NOT_ATTEMPTED}
            left_out |= bad or refused
            wanted -= set(left_out)
        return wanted, left_out

    def _abort(self, fence_id: str, identity: ProducerIdentity) -> ProducerIdentity:
        try:
            raised = end_transaction(
                self._router, fence_id, identity, commit=False, version=self._version
            )
        except RequestRefused as error:
            if Code(error.code).action is Action.FENCED:
                raise self._overtaken(fence_id) from error
            raise
        self._identities[fence_id] = raised
        return raised

    def _wait_until_over(self, fence_id: str) -> None:
        deadline = time.monotonic() + OVER_WITHIN_S
        while True:
            state = describe_transaction(self._router, fence_id)
            if state is None or state.is_over:
                return
            if time.monotonic() > deadline:
                raise ClusterTimeout(
                    self._router.client.cluster,
                    f"the fence {fence_id} is not over after {OVER_WITHIN_S:.0f} s; a partition"
                    " of the target may have no leader",
                )
            time.sleep(LOOK_EVERY_S)

    def _confirm(
        self, joined: set[TopicPartition], raised: _Raised
    ) -> dict[TopicPartition, Fenced | Code]:
        """Look for the marker in each partition: only those that have it are fenced."""
        ends = list_offsets(
            self._router, dict.fromkeys(joined, LATEST), timeout_s=CONFIRMED_WITHIN_S
        )
        outcomes: dict[TopicPartition, Fenced | Code] = {}
        for partition, (code, listed) in ends.items():
            marked: bool | None = None
            if listed is not None and code is Code.NONE:
                marked, code = self._look_for_marker(partition, listed.offset, raised.joined_as)
            if marked is None:
                self._unconfirmed[partition] = raised
            fenced = Fenced(raised.given, listed.offset) if marked and listed else None
            outcomes[partition] = fenced or code
        return outcomes

    def _look_for_marker(
        self, partition: TopicPartition, end: int, joined_as: ProducerIdentity
    ) -> tuple[bool | None, Code]:
        """Whether the marker is there; None if the log cannot be read now, with the reason."""
        try:
            return self._is_marked(partition, end, joined_as), Code.LEADER_NOT_AVAILABLE
        except NotAuthorized:
            return None, Code.TOPIC_AUTHORIZATION_FAILED
        except ClusterError:
            return None, Code.LEADER_NOT_AVAILABLE

    def _is_marked(self, partition: TopicPartition, end: int, joined_as: ProducerIdentity) -> bool:
        """Whether the marker of this fence lies at the end, with nothing of ours behind it.

        Where an abort raises the epoch, so does its marker; otherwise the identity was new.
        """
        least = joined_as.epoch + (1 if self._version >= EPOCH_RAISING else 0)
        at = end
        for _ in range(FARTHEST_BACK):
            header, _ = batch_at(self._router, partition, at - 1)
            if header.producer_id == joined_as.producer_id:
                return header.is_control and header.producer_epoch >= least
            at = header.base_offset
        return False

    def _identity(self, fence_id: str) -> ProducerIdentity:
        if fence_id not in self._identities:
            self._version = transaction_version(self._router)
            return self._renew(fence_id)
        return self._identities[fence_id]

    def _renew(self, fence_id: str) -> ProducerIdentity:
        identity = init_producer_id(self._router, transactional_id=fence_id)
        self._identities[fence_id] = identity
        return identity

    def _id_of(self, partition: TopicPartition) -> str:
        number = zlib.crc32(str(partition).encode()) % self._count
        return f"{self._prefix}-fence-{number}"

    def _overtaken(self, fence_id: str) -> Overtaken:
        return Overtaken(
            self._router.client.cluster,
            f"another driver has taken over the fence {fence_id}; this one stops",
        )

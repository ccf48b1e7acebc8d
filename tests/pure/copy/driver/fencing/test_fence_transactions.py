"""The empty transactions of a fence: those of all ids end together, and only lost ones repeat."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import pytest

from sparkmirror.copy.driver.fencing.fence import (
    DriverFenced,
    LogEnd,
    PartitionFencer,
    _Fence,
    fence_id_for,
)
from sparkmirror.copy.driver.fencing.producer_support import ProducerSupport
from sparkmirror.copy.driver.sharing.worker_group_membership import GroupMembership
from sparkmirror.errors import UnsupportedByBroker
from sparkmirror.model import TopicPartition
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.connection import ClientConfig
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.producer_ids import ProducerIdAndEpoch
from sparkmirror.wire.protocol.topics.current_leader import BrokerNode, LeaderAndEpoch
from sparkmirror.wire.protocol.topics.metadata_snapshot import (
    MetadataSnapshot,
    PartitionInfo,
    TopicInfo,
)

PARTITIONS = [TopicPartition("t", number) for number in range(40)]
IDS = sorted({fence_id_for("g-c", partition) for partition in PARTITIONS})
LEADER = PartitionInfo(leader=LeaderAndEpoch(1, 0))
METADATA = MetadataSnapshot(
    brokers={1: BrokerNode(1, "h", 1)},
    topics={"t": TopicInfo(name="t", partitions=dict.fromkeys(range(40), LEADER))},
)


class LeaderRouter(Router):
    """Every partition has a leader; no request is sent."""

    def refresh(
        self, topics: Iterable[str] | None = (), *, timeout_s: float = 0.0
    ) -> MetadataSnapshot:
        return METADATA


class RecordingFencer(PartitionFencer):
    """Sends no request, and keeps the order of the calls."""

    def __init__(self, *, is_member: bool | None = None) -> None:
        """Without `is_member` no other conductor may use the ids."""
        membership = GroupMembership(is_required=is_member is not None)
        membership.renew(math.inf if is_member else 0.0, is_alone=False)
        router = LeaderRouter(ClientConfig(cluster="target"), [Address("h", 1)])
        super().__init__(router, "g-c", membership)
        self.calls: list[tuple[str, str]] = []
        self.searched: list[dict[TopicPartition, _Fence]] = []
        self.taken: set[str] = set()
        """Fence ids that another conductor takes before their next abort."""
        self.left_out: dict[TopicPartition, ErrorCode] = {}
        self.taken_while_awaited: set[str] = set()

    @property
    def support(self) -> ProducerSupport:
        return ProducerSupport()

    def _identity(self, fence_id: str) -> ProducerIdAndEpoch:
        return self._identities.get(fence_id) or self._init_producer(fence_id)

    def _init_producer(self, fence_id: str) -> ProducerIdAndEpoch:
        self._identities[fence_id] = ProducerIdAndEpoch(IDS.index(fence_id), 0)
        return self._identities[fence_id]

    def _add_partitions(
        self, fence_id: str, identity: ProducerIdAndEpoch, partitions: set[TopicPartition]
    ) -> tuple[set[TopicPartition], dict[TopicPartition, ErrorCode]]:
        refused = {p: self.left_out[p] for p in partitions if p in self.left_out}
        return partitions - refused.keys(), refused

    def _abort(self, fence_id: str, identity: ProducerIdAndEpoch) -> ProducerIdAndEpoch:
        self.calls.append(("abort", fence_id))
        if fence_id in self.taken:
            self.taken.remove(fence_id)
            raise DriverFenced("target", "taken")
        return ProducerIdAndEpoch(identity.producer_id, identity.epoch + 1)

    def _await_ends(self, fence_ids: set[str]) -> None:
        self.calls += [("await", fence_id) for fence_id in sorted(fence_ids)]
        taken = self.taken_while_awaited & fence_ids
        if taken:
            self.taken_while_awaited -= taken
            self.taken |= taken
            raise UnsupportedByBroker("target", "no DescribeTransactions")

    def _confirm_markers(
        self, fences: Mapping[TopicPartition, _Fence]
    ) -> dict[TopicPartition, LogEnd | ErrorCode]:
        self.searched.append(dict(fences))
        return {partition: LogEnd(fence.new_identity, 1) for partition, fence in fences.items()}


def test_every_transaction_is_aborted_before_the_end_of_one_is_awaited() -> None:
    fencer = RecordingFencer()
    outcomes = fencer.fence(PARTITIONS)
    assert [name for name, _ in fencer.calls] == ["abort"] * len(IDS) + ["await"] * len(IDS)
    assert set(outcomes) == set(PARTITIONS)


def test_the_markers_of_all_ids_are_searched_together_each_with_its_own_identity() -> None:
    fencer = RecordingFencer()
    fencer.fence(PARTITIONS)
    (searched,) = fencer.searched
    for partition in PARTITIONS:
        producer = IDS.index(fence_id_for("g-c", partition))
        assert searched[partition].old_identity == (producer, 0)
        assert searched[partition].new_identity == (producer, 1)


def test_a_fence_whose_marker_was_not_found_yet_is_searched_and_not_made_again() -> None:
    fencer = RecordingFencer()
    first, second = PARTITIONS[:2]
    before = _Fence(ProducerIdAndEpoch(99, 5), ProducerIdAndEpoch(99, 6))
    fencer._unconfirmed[first] = before
    fencer.fence([first, second])
    (searched,) = fencer.searched
    assert searched[first] == before
    assert fencer.calls == [(name, fence_id_for("g-c", second)) for name in ("abort", "await")]


def test_only_an_id_that_another_conductor_takes_begins_again() -> None:
    fencer = RecordingFencer(is_member=True)
    fencer.taken = {IDS[2]}
    outcomes = fencer.fence(PARTITIONS)
    assert [fence_id for name, fence_id in fencer.calls if name == "abort"].count(IDS[2]) == 2
    assert len(fencer.calls) == 2 * len(IDS) + 1
    assert all(isinstance(outcome, LogEnd) for outcome in outcomes.values())


def test_an_id_that_is_taken_while_its_markers_are_written_begins_again() -> None:
    """A broker before 3.0 tells the end by accepting a second abort."""
    fencer = RecordingFencer(is_member=True)
    partition = PARTITIONS[0]
    fence_id = fence_id_for("g-c", partition)
    fencer.taken_while_awaited = {fence_id}
    assert isinstance(fencer.fence([partition])[partition], LogEnd)
    assert [name for name, _ in fencer.calls] == ["abort", "await", "abort", "abort", "await"]


@pytest.mark.parametrize("is_member", [None, False], ids=["alone", "no-member"])
def test_a_conductor_whose_id_is_taken_stops_unless_it_is_a_member(is_member: bool | None) -> None:
    fencer = RecordingFencer(is_member=is_member)
    fencer.taken = {IDS[0]}
    with pytest.raises(DriverFenced):
        fencer.fence(PARTITIONS)


def test_a_partition_that_cannot_be_added_does_not_keep_the_others_out() -> None:
    fencer = RecordingFencer()
    fencer.left_out = {PARTITIONS[0]: ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    outcomes = fencer.fence(PARTITIONS)
    assert outcomes[PARTITIONS[0]] is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert isinstance(outcomes[PARTITIONS[1]], LogEnd)
    only = PARTITIONS[0]
    fencer.calls.clear()
    assert fencer.fence([only]) == {only: ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    assert fencer.calls == [], "there is nothing to abort"

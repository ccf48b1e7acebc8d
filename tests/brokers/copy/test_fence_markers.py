"""The markers of a fence on a real broker: found at the end of the log, or behind other batches."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sparkmirror.copy.driver.fencing.fence import LogEnd, PartitionFencer
from sparkmirror.copy.driver.fencing.fence_markers import MarkerSearch, find_markers
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.records import Record
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.producer_ids import ProducerIdAndEpoch, init_producer_id
from sparkmirror.wire.protocol.synchronous.synchronous_produce import append_records
from sparkmirror.wire.protocol.transactions import EPOCH_BUMPING_VERSION
from tests.support.copy.copy_flow import CopyFlow, remote_topic_name
from tests.support.kafka.wire_copier import make_router

COUNT = 40
LARGE = [Record(n, 1, b"key", b"v" * 1000) for n in range(5)]


@pytest.fixture
def router(target: Cluster) -> Iterator[Router]:
    made = make_router(target.access())
    yield made
    made.close()


def test_markers_are_found_at_the_end_and_behind_other_batches(
    flow: CopyFlow, topic: str, router: Router
) -> None:
    flow.create_topic(topic, COUNT)
    remote = remote_topic_name(topic)
    partitions = [TopicPartition(remote, number) for number in range(COUNT)]
    for partition in partitions[::2]:
        append_records(router, partition, LARGE)
    fencer = PartitionFencer(router, f"fence-{topic}")
    fenced = fencer.fence(partitions)
    for number, partition in enumerate(partitions):
        outcome = fenced[partition]
        assert isinstance(outcome, LogEnd)
        assert (outcome.end_offset, outcome.has_marker_at_end) == (
            6 if number % 2 == 0 else 1,
            True,
        )
        assert outcome.end_of_batches == outcome.end_before_fence

    append_records(router, partitions[0], LARGE)  # another producer, after the marker
    after = fencer.identity_for(partitions[0])
    before = ProducerIdAndEpoch(after.producer_id, after.epoch - 1)
    version = EPOCH_BUMPING_VERSION
    assert find_markers(router, {partitions[0]: before}, version) == {
        partitions[0]: MarkerSearch(has_marker=True, end_offset=11)
    }
    stranger = init_producer_id(router)
    missing = TopicPartition(remote, COUNT)
    found = find_markers(router, dict.fromkeys([partitions[1], missing], stranger), version)
    assert found[partitions[1]].has_marker is None, "the log begins without a marker of this one"
    assert found[missing].has_marker is None
    assert found[missing].code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

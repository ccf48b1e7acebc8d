"""How long a fetch of a topic reader may wait for new records."""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import closing
from typing import Any

from kafka.protocol.consumer import FetchResponse, ListOffsetsResponse

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.store.topic_reader import SINGLE_LEADER_WAIT_MS, TopicReader, has_reached
from tests.support.kafka.fake_broker import FakeBroker, answering_broker, leader_metadata

FETCH, LIST_OFFSETS, METADATA = 1, 2, 3


def empty_offsets(_: FakeBroker) -> Any:
    topic = ListOffsetsResponse.ListOffsetsTopicResponse
    partition = topic.ListOffsetsPartitionResponse(
        partition_index=0, error_code=0, offset=0, timestamp=-1, leader_epoch=0
    )
    return ListOffsetsResponse(topics=[topic(name="t", partitions=[partition])])


def empty_fetch(_: FakeBroker) -> Any:
    return FetchResponse(throttle_time_ms=0, error_code=0, session_id=0, responses=[])


def test_only_the_first_fetch_does_not_wait_for_new_records() -> None:
    answers: dict[int, Callable[[FakeBroker], Any]] = {
        METADATA: leader_metadata,
        LIST_OFFSETS: empty_offsets,
        FETCH: empty_fetch,
    }
    with answering_broker(answers) as broker:
        access = ClusterAccess.from_properties("c", {"bootstrap.servers": str(broker.address)})
        with closing(access.new_router()) as router:
            reader = TopicReader(router, "t")
            assert has_reached(reader.positions(), reader.end_offsets), "the topic is empty"
            for _ in range(3):
                assert reader.poll() == ([], None)
        bodies = [one.body for one in broker.requests if one.api_key == FETCH]
    # After the tags of the header: the replica id, then max_wait_ms.
    waits = [struct.unpack_from(">xii", body)[1] for body in bodies]
    assert waits == [0, SINGLE_LEADER_WAIT_MS, SINGLE_LEADER_WAIT_MS]

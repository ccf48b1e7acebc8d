"""The writer of offset syncs: what it says while the broker refuses them."""

from __future__ import annotations

from typing import Any

from kafka.protocol.producer import ProduceResponse

from sparkmirror.copy.driver.offset_sync_writer import OffsetSyncWriter
from sparkmirror.copy.job import OffsetSyncsTopic
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.model import TopicPartition
from sparkmirror.wire.protocol.error_codes import ErrorCode
from tests.support.copy.scripted_clusters import SETTINGS
from tests.support.kafka.fake_broker import (
    API_VERSION_RANGES,
    FakeBroker,
    answering_broker,
    leader_metadata,
)
from tests.support.waiting import wait_until

PRODUCE, METADATA = 0, 3
RANGES = {**API_VERSION_RANGES, PRODUCE: (9, 9)}
_Topic: Any = ProduceResponse.TopicProduceResponse


class SyncsBroker:
    """A broker with the topic `t`, which it refuses to write until `code` is NONE."""

    def __init__(self) -> None:
        self.code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        self.broker = answering_broker(
            {METADATA: leader_metadata, PRODUCE: self._answer}, ranges=RANGES
        )

    def _answer(self, broker: FakeBroker) -> Any:
        partition = _Topic.PartitionProduceResponse(
            index=0, error_code=self.code.value, base_offset=0
        )
        topic = _Topic(name="t", partition_responses=[partition])
        return ProduceResponse(responses=[topic], throttle_time_ms=0)


def syncs_topic(broker: FakeBroker) -> OffsetSyncsTopic:
    client = {"bootstrap.servers": str(broker.address)}
    return OffsetSyncsTopic(name="t", cluster="source", client=client)


def test_refused_offset_syncs_are_a_problem_until_they_are_written() -> None:
    syncs = SyncsBroker()
    with syncs.broker as broker:
        writer = OffsetSyncWriter(syncs_topic(broker), "client")
        writer.start()
        try:
            assert writer.problem(SETTINGS) == ""
            writer.add_run(TopicPartition("orders", 0), OffsetRun(0, 0, 1000))
            wait_until(lambda: writer.problem(SETTINGS) != "", "the broker to refuse")
            assert writer.problem(SETTINGS) == (
                "offset syncs cannot be written to t, so that new offsets of groups are not"
                " translated: source: source: Produce answered TOPIC_AUTHORIZATION_FAILED (29):"
                " t-0; grant Write on the topic (kafka-acls --add --operation Write --topic)"
            )
            syncs.code = ErrorCode.NONE
            wait_until(lambda: writer.problem(SETTINGS) == "", "the syncs to be written")
        finally:
            writer.stop()

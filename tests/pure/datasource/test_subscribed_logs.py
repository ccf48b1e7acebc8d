"""What brokers say of topics and logs: believed at once, or asked for again. With a fake broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest
from kafka.protocol.consumer import ListOffsetsResponse
from kafka.protocol.metadata import MetadataResponse

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.datasource.subscribed_logs import SubscribedLogs
from sparkmirror.datasource.subscription import Subscription
from sparkmirror.errors import ClusterUnavailable, NotAuthorized
from sparkmirror.model import TopicPartition
from sparkmirror.wire.protocol.error_codes import ErrorCode
from tests.support.kafka.fake_broker import FakeBroker, answering_broker

LIST_OFFSETS, METADATA = 2, 3
ZERO, ONE = TopicPartition("t", 0), TopicPartition("t", 1)
ID = UUID(int=7)
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@dataclass
class OneBroker:
    """A broker with the topic `t`. Answers are those of a list; the last one stays."""

    partitions: list[int] = field(default_factory=lambda: [2])
    """How many partitions metadata lists."""
    topic_codes: list[ErrorCode] = field(default_factory=lambda: [ErrorCode.NONE])
    ends: list[dict[int, int | ErrorCode]] = field(default_factory=lambda: [{0: 10, 1: 10}])
    metadata_requests: int = 0
    offset_requests: int = 0

    def metadata(self, broker: FakeBroker) -> Any:
        self.metadata_requests += 1
        topic = MetadataResponse.MetadataResponseTopic
        count = _next(self.partitions)
        return MetadataResponse(
            brokers=[
                MetadataResponse.MetadataResponseBroker(
                    node_id=1, host=broker.address.host, port=broker.address.port
                )
            ],
            topics=[
                topic(
                    error_code=_next(self.topic_codes).value,
                    name="t",
                    topic_id=ID,
                    partitions=[
                        topic.MetadataResponsePartition(
                            partition_index=number,
                            leader_id=1,
                            leader_epoch=1,
                            replica_nodes=[],
                            isr_nodes=[],
                        )
                        for number in range(count)
                    ],
                )
            ],
            cluster_id="c",
            controller_id=1,
        )

    def list_offsets(self, _: FakeBroker) -> Any:
        self.offset_requests += 1
        topic = ListOffsetsResponse.ListOffsetsTopicResponse
        answers = _next(self.ends)
        return ListOffsetsResponse(
            topics=[
                topic(
                    name="t",
                    partitions=[
                        topic.ListOffsetsPartitionResponse(
                            partition_index=number,
                            error_code=end.value if isinstance(end, ErrorCode) else 0,
                            offset=-1 if isinstance(end, ErrorCode) else end,
                            timestamp=-1,
                            leader_epoch=0,
                        )
                        for number, end in answers.items()
                    ],
                )
            ]
        )


def _next(answers: list[Any]) -> Any:
    return answers.pop(0) if len(answers) > 1 else answers[0]


@contextmanager
def logs_of(one: OneBroker, **waits: float) -> Iterator[SubscribedLogs]:
    answers: dict[int, Callable[[FakeBroker], Any]] = {
        METADATA: one.metadata,
        LIST_OFFSETS: one.list_offsets,
    }
    with answering_broker(answers) as broker:
        properties = {"bootstrap.servers": str(broker.address)}
        router = ClusterAccess.from_properties("c", properties).new_router()
        try:
            subscription = Subscription(topics=("t",))
            yield SubscribedLogs(router, subscription, read_committed=False, **waits)
        finally:
            router.close()


def test_an_expected_partition_that_a_broker_does_not_list_yet_is_waited_for() -> None:
    one = OneBroker(partitions=[1, 1, 2])
    with logs_of(one) as logs:
        listed = logs.partitions({ONE})
    assert listed.partitions == [ZERO, ONE]
    assert listed.topic_ids == {"t": str(ID)}


def test_a_listing_is_used_again_for_a_while_unless_something_is_missing() -> None:
    """Spark asks a stream without new records every few milliseconds."""
    one = OneBroker(partitions=[1, 2])
    with logs_of(one, listing_age_s=600) as logs:
        assert logs.partitions().partitions == [ZERO]
        assert logs.partitions({ZERO}).partitions == [ZERO]
        assert one.metadata_requests == 1
        assert logs.partitions(is_recent=True).partitions == [ZERO, ONE]
        one.partitions = [1, 2]
        assert logs.partitions({ONE}).partitions == [ZERO, ONE]
        assert one.metadata_requests == 2


def test_a_topic_that_a_user_may_not_describe_any_more_is_not_taken_for_deleted() -> None:
    one = OneBroker(topic_codes=[ErrorCode.TOPIC_AUTHORIZATION_FAILED])
    with (
        logs_of(one, new_topic_wait_s=0) as logs,
        pytest.raises(NotAuthorized, match="grant Describe on the topic"),
    ):
        logs.partitions({ZERO})


def test_a_named_topic_that_is_known_a_moment_too_late_is_not_left_out() -> None:
    one = OneBroker()
    with (
        logs_of(one) as logs,
        pytest.raises(ClusterUnavailable, match="t was not known to all brokers"),
    ):
        logs.require_named([])


def test_a_log_that_ends_before_what_was_read_is_asked_for_again() -> None:
    """A former leader answers for a while."""
    one = OneBroker(ends=[{0: 4, 1: 10}, {0: 4}, {0: 12}])
    with logs_of(one) as logs:
        assert logs.latest([ZERO, ONE], {ZERO: 11, ONE: 10}) == {ZERO: 12, ONE: 10}


def test_a_log_that_stays_shorter_is_believed() -> None:
    one = OneBroker(ends=[{0: 4}])
    with logs_of(one, shorter_wait_s=0.1) as logs:
        assert logs.latest([ZERO], {ZERO: 11}) == {ZERO: 4}
    assert one.offset_requests > 1


def test_a_partition_that_its_leader_does_not_know_is_not_left_out_while_metadata_lists_it() -> (
    None
):
    one = OneBroker(ends=[{0: 10, 1: UNKNOWN}])
    with (
        logs_of(one, timeout_s=0.3) as logs,
        pytest.raises(ClusterUnavailable, match="the leader of t-1 does not know it"),
    ):
        logs.latest([ZERO, ONE])


def test_a_partition_is_left_out_if_metadata_does_not_list_it_either() -> None:
    one = OneBroker(partitions=[2, 1], ends=[{0: 10, 1: UNKNOWN}])
    with logs_of(one, timeout_s=0.3) as logs:
        assert logs.latest([ZERO, ONE]) == {ZERO: 10}


def test_a_time_behind_the_last_record_has_no_offset() -> None:
    one = OneBroker(ends=[{0: 3, 1: -1}])
    with logs_of(one) as logs:
        assert logs.at_times({ZERO: 5, ONE: 6}) == {ZERO: 3, ONE: None}

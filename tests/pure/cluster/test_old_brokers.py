"""Old brokers get one request for each group, or an older API."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from kafka.protocol.admin import AlterConfigsResponse
from kafka.protocol.consumer import OffsetFetchResponse
from kafka.protocol.metadata import FindCoordinatorResponse, MetadataResponse

from sparkmirror.cluster.config_resources import alter_configs, incremental_alter_configs
from sparkmirror.cluster.group_states import describe_group_state
from sparkmirror.cluster.groups import list_consumer_group_offsets
from sparkmirror.errors import NotAuthorized, UnsupportedByBroker
from sparkmirror.mirror.topics.topic_configs import AlterConfigOp, AlterConfigOpType
from sparkmirror.model import OffsetAndMetadata, TopicPartition
from sparkmirror.wire.net.connection import ClientConfig
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.primitive_types import (
    EMPTY_TAG_BUFFER,
    encode_compact_string,
    encode_string,
)
from tests.support.kafka.fake_broker import (
    FakeBroker,
    ReceivedRequest,
    Reply,
    api_versions_reply,
    length_prefixed,
    response_reply,
)

OFFSET_FETCH, FIND_COORDINATOR, METADATA, DESCRIBE_GROUPS, API_VERSIONS = 9, 10, 3, 15, 18
ALTER_CONFIGS, CONSUMER_GROUP_DESCRIBE = 33, 69
RANGES: Mapping[int, tuple[int, int]] = {
    METADATA: (0, 7),
    OFFSET_FETCH: (0, 5),
    FIND_COORDINATOR: (0, 2),
    DESCRIBE_GROUPS: (0, 2),
    API_VERSIONS: (0, 2),
    ALTER_CONFIGS: (0, 1),
}


class OldBroker:
    """A broker of Kafka 2.1."""

    def __init__(
        self, rules: Mapping[int, Reply], ranges: Mapping[int, tuple[int, int]] = RANGES
    ) -> None:
        self.rules = rules
        self.ranges = ranges
        self.broker = FakeBroker(self._replies(), sends_api_versions=False)

    def _replies(self) -> Iterator[Reply]:
        while True:
            yield self._reply

    def _reply(self, received: ReceivedRequest) -> bytes:
        if received.api_key == API_VERSIONS:
            return api_versions_reply(self.ranges)(received)
        if received.api_key == FIND_COORDINATOR:
            return response_reply(self._coordinator())(received)
        if received.api_key == METADATA:
            return response_reply(self._metadata())(received)
        return self.rules[received.api_key](received)

    def _coordinator(self) -> FindCoordinatorResponse:
        host, port = self.broker.address
        return FindCoordinatorResponse(error_code=0, node_id=0, host=host, port=port)

    def _metadata(self) -> MetadataResponse:
        host, port = self.broker.address
        known = MetadataResponse.MetadataResponseBroker(node_id=0, host=host, port=port)
        return MetadataResponse(brokers=[known], topics=[], cluster_id="c", controller_id=0)


@contextmanager
def old_broker(
    rules: Mapping[int, Reply], ranges: Mapping[int, tuple[int, int]] = RANGES
) -> Iterator[tuple[Router, FakeBroker]]:
    made = OldBroker(rules, ranges)
    with made.broker:
        router = Router(ClientConfig(cluster="old"), [made.broker.address])
        try:
            yield router, made.broker
        finally:
            router.close()


def _fetched(code: int = 0) -> Any:
    topic = OffsetFetchResponse.OffsetFetchResponseTopic
    partition = topic.OffsetFetchResponsePartition(
        partition_index=3,
        committed_offset=42,
        committed_leader_epoch=-1,
        metadata="note",
        error_code=0,
    )
    topics = [] if code else [topic(name="t", partitions=[partition])]
    return OffsetFetchResponse(throttle_time_ms=0, topics=topics, error_code=code)


def test_offsets_of_several_groups_are_fetched_with_one_request_each() -> None:
    def fetch(received: ReceivedRequest) -> bytes:
        return response_reply(_fetched(30 if b"secret" in received.body else 0))(received)

    with old_broker({OFFSET_FETCH: fetch}) as (router, broker):
        found = list_consumer_group_offsets(router, ["one", "secret", "two"])
    expected = {TopicPartition("t", 3): OffsetAndMetadata(42, "note")}
    assert (found["one"], found["two"]) == (expected, expected)
    assert isinstance(found["secret"], NotAuthorized)
    assert broker.api_keys().count(OFFSET_FETCH) == 3


@pytest.mark.parametrize(
    ("said", "state"), [("Stable", "Stable"), ("Empty", "Empty"), ("Dead", None)]
)
def test_group_states_are_read_from_the_older_api(said: str, state: str | None) -> None:
    def describe(received: ReceivedRequest) -> bytes:
        assert received.body == b"\x00\x00\x00\x01" + encode_string("g")
        body = (
            b"\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00" + encode_string("g") + encode_string(said)
        )
        return length_prefixed(
            received.correlation_id.to_bytes(4, "big") + body + b"what members say"
        )

    with old_broker({DESCRIBE_GROUPS: describe}) as (router, _):
        assert describe_group_state(router, "g") == state


def _dead_group(received: ReceivedRequest) -> bytes:
    body = b"\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00" + encode_string("g") + encode_string("Dead")
    return length_prefixed(received.correlation_id.to_bytes(4, "big") + body)


def _consumer_group(code: int, state: str) -> Reply:
    def reply(received: ReceivedRequest) -> bytes:
        head = received.correlation_id.to_bytes(4, "big") + EMPTY_TAG_BUFFER
        group = code.to_bytes(2, "big") + encode_compact_string(None)
        group += encode_compact_string("g") + encode_compact_string(state)
        return length_prefixed(head + b"\x00\x00\x00\x00\x02" + group)

    return reply


@pytest.mark.parametrize(
    ("code", "state", "expected"), [(35, "", None), (69, "", None), (0, "Stable", "Stable")]
)
def test_a_group_is_absent_if_the_broker_supports_the_consumer_protocol_but_disables_it(
    code: int, state: str, expected: str | None
) -> None:
    rules = {DESCRIBE_GROUPS: _dead_group, CONSUMER_GROUP_DESCRIBE: _consumer_group(code, state)}
    ranges = {**RANGES, CONSUMER_GROUP_DESCRIBE: (0, 0)}
    with old_broker(rules, ranges) as (router, broker):
        assert describe_group_state(router, "g") == expected
    assert CONSUMER_GROUP_DESCRIBE in broker.api_keys()


def test_the_calls_for_a_group_state_share_one_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow_dead_group(received: ReceivedRequest) -> bytes:
        time.sleep(0.2)
        return _dead_group(received)

    rules = {DESCRIBE_GROUPS: slow_dead_group, CONSUMER_GROUP_DESCRIBE: _consumer_group(0, "Empty")}
    ranges = {**RANGES, CONSUMER_GROUP_DESCRIBE: (0, 0)}
    with old_broker(rules, ranges) as (router, _):
        timeouts: list[float] = []
        call = router.call

        def recorded_call(*args: Any, timeout_s: float, **kwargs: Any) -> Any:
            timeouts.append(timeout_s)
            return call(*args, timeout_s=timeout_s, **kwargs)

        monkeypatch.setattr(router, "call", recorded_call)
        assert describe_group_state(router, "g", timeout_s=50.0) == "Empty"
    first, second = timeouts
    assert first == 50.0
    assert second <= 49.8


def test_an_error_about_configs_without_a_message_names_only_the_topic() -> None:
    response = AlterConfigsResponse.AlterConfigsResourceResponse(
        error_code=40, error_message=None, resource_type=2, resource_name="t"
    )
    altered = AlterConfigsResponse(throttle_time_ms=0, responses=[response])
    with old_broker({ALTER_CONFIGS: response_reply(altered)}) as (router, _):
        error = alter_configs(router, {"t": {"retention.ms": "x"}})["t"]
    assert str(error).endswith("(40): t")


def test_an_old_broker_cannot_alter_single_configs() -> None:
    response = AlterConfigsResponse.AlterConfigsResourceResponse(
        error_code=0, error_message=None, resource_type=2, resource_name="t"
    )
    altered = AlterConfigsResponse(throttle_time_ms=0, responses=[response])
    operation = AlterConfigOp(name="retention.ms", operation=AlterConfigOpType.DELETE)
    with old_broker({ALTER_CONFIGS: response_reply(altered)}) as (router, broker):
        with pytest.raises(UnsupportedByBroker, match="IncrementalAlterConfigs"):
            incremental_alter_configs(router, {"t": [operation]})
        assert alter_configs(router, {"t": {"retention.ms": "7"}}) == {}
    assert b"retention.ms\x00\x017" in broker.requests[-1].body

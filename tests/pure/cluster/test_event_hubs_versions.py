"""Event Hubs lists old versions of some APIs: every request of a mirror has one that it knows."""

from __future__ import annotations

from typing import Any

import pytest
from kafka.protocol.metadata import FindCoordinatorResponse

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.groups import OFFSET_COMMIT, OFFSET_FETCH
from sparkmirror.model import TopicPartition
from sparkmirror.wire.net.connection import ClientConfig
from sparkmirror.wire.net.routing import (
    REQUEST_TIMEOUT_S,
    CoordinatorOf,
    CoordinatorType,
    LeaderOf,
    Router,
)
from sparkmirror.wire.protocol.api_versions import NodeApiVersions
from sparkmirror.wire.protocol.apis import (
    API_VERSIONS,
    DESCRIBE_CONFIGS,
    FIND_COORDINATOR,
    LIST_OFFSETS,
    METADATA,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    Api,
)
from sparkmirror.wire.protocol.fetch import fetch_version
from sparkmirror.wire.protocol.group_membership import (
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    SYNC_GROUP,
)
from sparkmirror.wire.protocol.produce import produce_version
from tests.support.kafka.fake_broker import FakeBroker, answering_broker, leader_metadata

RANGES = {
    0: (3, 7),
    1: (4, 6),
    2: (0, 7),
    3: (0, 5),
    8: (0, 8),
    9: (0, 8),
    10: (0, 1),
    11: (0, 7),
    12: (0, 4),
    13: (0, 4),
    14: (0, 5),
    17: (0, 1),
    18: (0, 2),
    32: (0, 2),
    36: (0, 1),
}
"""The lower ones of the lists that users of Event Hubs published between 2022 and 2024."""
EVENT_HUBS = NodeApiVersions(cluster="target", ranges=RANGES)


@pytest.mark.parametrize(
    "api",
    [
        METADATA,
        FIND_COORDINATOR,
        LIST_OFFSETS,
        OFFSET_COMMIT,
        OFFSET_FETCH,
        JOIN_GROUP,
        SYNC_GROUP,
        HEARTBEAT,
        LEAVE_GROUP,
        SASL_HANDSHAKE,
        SASL_AUTHENTICATE,
        API_VERSIONS,
        DESCRIBE_CONFIGS,
    ],
    ids=lambda api: api.name,
)
def test_an_api_has_a_version_that_event_hubs_lists(api: Api[Any, Any]) -> None:
    api.require_support(EVENT_HUBS)


def test_records_are_sent_and_read_in_versions_that_event_hubs_lists() -> None:
    assert produce_version(EVENT_HUBS, by_id=False) == 7
    assert fetch_version(EVENT_HUBS, by_id=False) == 6


def _coordinator(broker: FakeBroker) -> FindCoordinatorResponse:
    host, port = broker.address
    return FindCoordinatorResponse(error_code=0, node_id=1, host=host, port=port)


def test_leaders_and_coordinators_are_found_with_old_versions() -> None:
    answers = {3: leader_metadata, 10: _coordinator}
    with answering_broker(answers, ranges=RANGES) as broker:
        router = Router(ClientConfig(cluster="target"), [broker.address])
        router.connection_to(LeaderOf(TopicPartition("t", 0)), timeout_s=20)
        router.connection_to(CoordinatorOf(CoordinatorType.GROUP, "g"), timeout_s=20)
        leader = router.metadata.leader_of(TopicPartition("t", 0))
        router.close()
        sent = {request.api_key: request.version for request in broker.requests}
    assert (leader.node_id, leader.epoch) == (1, -1) if leader else False
    assert (sent[3], sent[10]) == (5, 1)


@pytest.mark.parametrize(
    ("servers", "timeout_s"),
    [("my.servicebus.windows.net:9093", 25.0), ("kafka:9092", REQUEST_TIMEOUT_S)],
)
def test_requests_to_event_hubs_have_more_time(servers: str, timeout_s: float) -> None:
    access = ClusterAccess.from_properties("target", {"bootstrap.servers": servers})
    router = access.new_router()
    found = router.connections.attempt_timeout_s(router.deadline_after(25.0))
    assert found == pytest.approx(timeout_s, abs=0.5)

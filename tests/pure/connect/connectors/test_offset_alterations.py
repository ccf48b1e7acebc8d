"""The offsets that an operator may write for a connector, and those that it can never have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from sparkmirror.connect.connector import Connector
from sparkmirror.connect.connectors.checkpoint.checkpoint_connector import (
    MirrorCheckpointConnector,
)
from sparkmirror.connect.connectors.heartbeat.heartbeat_connector import MirrorHeartbeatConnector
from sparkmirror.connect.connectors.source.source_connector import MirrorSourceConnector
from sparkmirror.errors import BadRequest, OffsetsRejected
from sparkmirror.mirror.connect_topics.offset_alterations import (
    OffsetAlteration,
    normalize_alterations,
)
from tests.support.connect.connector_context import RecordingContext

CONFIG = {
    "name": "c",
    "connector.class": "MirrorConnector",
    "source.cluster.alias": "A",
    "source.cluster.bootstrap.servers": "a:9092",
    "target.cluster.alias": "B",
    "target.cluster.bootstrap.servers": "b:9092",
    "topics": "orders, pay.*",
    "groups": "billing",
}
CONNECTORS: Mapping[str, Callable[[str, RecordingContext], Connector]] = {
    "source": MirrorSourceConnector,
    "checkpoint": MirrorCheckpointConnector,
    "heartbeat": MirrorHeartbeatConnector,
}
ORDERS = {"cluster": "A", "topic": "orders", "partition": 0}
BILLING = {"group": "billing", "topic": "A.orders", "partition": 0}
FLOW = {"sourceClusterAlias": "A", "targetClusterAlias": "B"}


def alter(kind: str, partition: Any, offset: Any = None, **more: str) -> bool:
    """Ask a connector that is not started, as the herder does."""
    connector = CONNECTORS[kind]("c", RecordingContext())
    return connector.alter_offsets(
        CONFIG | more, normalize_alterations([OffsetAlteration(partition, offset)])
    )


@pytest.mark.parametrize(
    ("kind", "partition"),
    [
        ("source", ORDERS),
        ("source", ORDERS | {"topic": "payments", "partition": 2_000}),
        ("source", ORDERS | {"topic": "heartbeats"}),
        ("checkpoint", BILLING),
        ("heartbeat", FLOW),
    ],
)
def test_a_partition_that_the_connector_can_have_is_accepted(kind: str, partition: Any) -> None:
    assert alter(kind, partition, {"offset": 0})


@pytest.mark.parametrize(
    ("kind", "partition", "reason"),
    [
        ("source", ORDERS | {"cluster": "B"}, "source.cluster.alias is A"),
        ("source", ORDERS | {"topic": "order"}, "topics and topics.exclude do not select order"),
        ("source", ORDERS | {"topic": "__consumer_offsets"}, "is an internal topic"),
        ("source", ORDERS | {"topic": "B.orders"}, "B.orders was copied from B"),
        ("source", ORDERS | {"x": 1}, "its keys are cluster, topic, partition, and not x"),
        ("checkpoint", BILLING | {"group": "x"}, "groups.exclude do not select group x"),
        ("checkpoint", BILLING | {"topic": "orders"}, "topic orders has A.orders"),
        ("checkpoint", BILLING | {"cluster": "A"}, "and not cluster"),
        ("heartbeat", FLOW | {"sourceClusterAlias": "C"}, "its heartbeats are those of A->B"),
        ("heartbeat", FLOW | {"partition": 0}, "and not partition"),
    ],
)
def test_a_partition_that_the_connector_cannot_have_is_refused_with_the_reason(
    kind: str, partition: Any, reason: str
) -> None:
    with pytest.raises(BadRequest, match="cannot belong to this connector") as raised:
        alter(kind, partition, {"offset": 0})
    assert reason in str(raised.value)
    assert str(raised.value).endswith("No offset was changed")


def test_an_offset_of_any_partition_can_be_removed_whatever_the_config_is() -> None:
    for kind in CONNECTORS:
        assert alter(kind, {"cluster": "elsewhere"}, topics="(", groups="(")


def test_what_java_refuses_is_refused_first_with_its_text() -> None:
    with pytest.raises(OffsetsRejected, match="which cannot be negative"):
        alter("source", ORDERS | {"cluster": "B", "partition": -1}, {"offset": 0})

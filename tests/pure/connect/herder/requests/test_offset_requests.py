"""Offsets that an operator writes over REST, with the real source connector."""

from __future__ import annotations

from functools import partial

from sparkmirror.config.definition.java_classes import SOURCE_CONNECTOR
from sparkmirror.connect.connectors.source.source_connector import MirrorSourceConnector
from sparkmirror.connect.runtime.connector_registry import RegisteredConnector
from sparkmirror.mirror.connect_topics.connect_configs import TargetState
from tests.support.connect.fake_connectors import ConnectorProbe, FakeTaskGroup
from tests.support.connect.in_memory_herder import SOURCE_CONFIG, named_config, running_herder
from tests.support.rest.rest_client import RestClient, running_rest_server

PATH = "/connectors/c/offsets"


def offset_of(topic: str, number: int) -> dict[str, object]:
    partition = {"cluster": "source", "topic": topic, "partition": number}
    return {"partition": partition, "offset": {"offset": 7}}


def test_a_refused_offset_is_absent_from_the_offsets_and_so_are_those_beside_it() -> None:
    probe = ConnectorProbe()
    entry = RegisteredConnector(
        connector=partial(MirrorSourceConnector, partition_counts=lambda _: {"orders": 2}),
        task_group=lambda connector, listener: FakeTaskGroup(connector, listener, probe),
    )
    with running_herder(probe=probe, registry={SOURCE_CONNECTOR: entry}) as harness:
        config = named_config("c", SOURCE_CONFIG)
        harness.herder.create_connector("c", config, TargetState.STOPPED)
        with running_rest_server(harness.herder) as server:
            client = RestClient(server.address)
            refused = client.send_json(
                "PATCH", PATH, {"offsets": [offset_of("orders", 1), offset_of("orders", 2)]}
            )
            assert refused.status == 400
            assert "orders had 2 partitions when the connector last ran" in refused.message
            assert client.request("GET", PATH).json == {"offsets": []}
            known, unknown = offset_of("orders", 1), offset_of("payments", 9)
            assert client.send_json("PATCH", PATH, {"offsets": [known, unknown]}).status == 200
            stored = client.request("GET", PATH).json["offsets"]
            expected = [known["partition"], unknown["partition"]]
            assert [one["partition"] for one in stored] == expected
            client.close()

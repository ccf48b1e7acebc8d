"""AKHQ's published Java client library calls the REST server.

Needs Java and the library from Maven, but no broker: the herder has its stores in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sparkmirror.lab.kafka.ivy import MavenCoordinates
from tests.support.connect.in_memory_herder import SOURCE_CONFIG, HerderHarness, running_herder
from tests.support.lab.java_library import fetch_library, running_jvm
from tests.support.rest.rest_client import running_rest_server

CLIENT = MavenCoordinates("org.sourcelab", "kafka-connect-client", "4.0.4")
# The first run on a computer downloads the library and its dependencies.
pytestmark = pytest.mark.timeout(900)
NAME = "source->target.MirrorSourceConnector"
PLUGIN = "org.apache.kafka.connect.mirror.MirrorSourceConnector"


@pytest.fixture(scope="module")
def java() -> Iterator[Any]:
    """The packages of a JVM with the library on its class path."""
    with running_jvm(fetch_library(CLIENT)) as packages:
        yield packages


@pytest.fixture
def harness() -> Iterator[HerderHarness]:
    with running_herder() as running:
        yield running


@pytest.fixture
def akhq(java: Any, harness: HerderHarness) -> Iterator[Any]:
    """AKHQ's client for the server under test."""
    package = java.org.sourcelab.kafka.connect.apiclient
    with running_rest_server(harness.herder) as server:
        yield package.KafkaConnectClient(package.Configuration(server.address))


def create(java: Any, akhq: Any, harness: HerderHarness) -> Any:
    dto = java.org.sourcelab.kafka.connect.apiclient.request.dto
    builder = dto.NewConnectorDefinition.newBuilder().withName(NAME)
    for key, value in SOURCE_CONFIG.items():
        builder = builder.withConfig(key, value)
    connector = akhq.addConnector(builder.build())
    harness.wait_for_states(NAME, "RUNNING", "RUNNING", "RUNNING")
    return connector


def test_a_connector_is_created_and_shown(java: Any, akhq: Any, harness: HerderHarness) -> None:
    connector = create(java, akhq, harness)
    assert (connector.getName(), connector.getType()) == (NAME, "source")
    assert list(akhq.getConnectors()) == [NAME]
    assert akhq.getConnectorConfig(NAME)["topics"] == "orders,payments"
    status = akhq.getConnectorStatus(NAME)
    assert status.getConnector().get("state") == "RUNNING"
    assert [task.getId() for task in status.getTasks()] == [0, 1]
    assert akhq.getConnectorTaskStatus(NAME, 1).getState() == "RUNNING"
    assert len(akhq.getConnectorTasks(NAME)) == 2


def test_the_list_has_definitions_and_statuses(
    java: Any, akhq: Any, harness: HerderHarness
) -> None:
    create(java, akhq, harness)
    listed = akhq.getConnectorsWithAllExpandedMetadata()
    assert list(listed.getConnectorNames()) == [NAME]
    assert listed.getDefinitionForConnector(NAME).getConfig()["connector.class"] == PLUGIN
    assert listed.getStatusForConnector(NAME).getConnector().get("state") == "RUNNING"


def test_a_connector_is_changed_paused_resumed_restarted_and_deleted(
    java: Any, akhq: Any, harness: HerderHarness
) -> None:
    create(java, akhq, harness)
    changed = java.java.util.HashMap()
    for key, value in {**SOURCE_CONFIG, "tasks.max": "1"}.items():
        changed.put(key, value)
    assert akhq.updateConnectorConfig(NAME, changed).getConfig()["tasks.max"] == "1"
    harness.wait_for_states(NAME, "RUNNING", "RUNNING")
    assert akhq.pauseConnector(NAME)
    harness.wait_for_states(NAME, "PAUSED", "PAUSED")
    assert akhq.resumeConnector(NAME)
    harness.wait_for_states(NAME, "RUNNING", "RUNNING")
    assert akhq.restartConnector(NAME)
    assert akhq.restartConnectorTask(NAME, 0)
    assert akhq.deleteConnector(NAME)
    assert list(akhq.getConnectors()) == []


def test_plugins_are_listed_and_configs_validated(java: Any, akhq: Any) -> None:
    assert PLUGIN in [plugin.getClassName() for plugin in akhq.getConnectorPlugins()]
    dto = java.org.sourcelab.kafka.connect.apiclient.request.dto
    form = (
        dto.ConnectorPluginConfigDefinition.newBuilder()
        .withName("MirrorSourceConnector")
        .withConfig("connector.class", PLUGIN)
        .build()
    )
    answer = akhq.validateConnectorPluginConfig(form)
    assert answer.getErrorCount() > 0
    assert "Common" in list(answer.getGroups())
    assert len(answer.getConfigs()) > 50


def test_an_error_is_read_from_its_body(java: Any, akhq: Any) -> None:
    with pytest.raises(Exception, match="No status found for connector nope"):
        akhq.getConnectorStatus("nope")
    assert akhq.getConnectServerVersion().getVersion() == "4.3.0"

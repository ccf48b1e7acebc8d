"""AKHQ's own client library, as its authors published it, calls our REST server.

Needs Java and the library from Maven, and no broker: the worker is a herder on stores in memory.
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
# The first time on a computer, the library and what it needs are fetched.
pytestmark = pytest.mark.timeout(900)
NAME = "source->target.MirrorSourceConnector"
PLUGIN = "org.apache.kafka.connect.mirror.MirrorSourceConnector"


@pytest.fixture(scope="module")
def machine() -> Iterator[Any]:
    """A Java machine that knows the library."""
    with running_jvm(fetch_library(CLIENT)) as packages:
        yield packages


@pytest.fixture
def stage() -> Iterator[HerderHarness]:
    with running_herder() as made:
        yield made


@pytest.fixture
def akhq(machine: Any, stage: HerderHarness) -> Iterator[Any]:
    """The client, with its address set to ours."""
    package = machine.org.sourcelab.kafka.connect.apiclient
    with running_rest_server(stage.herder) as server:
        yield package.KafkaConnectClient(package.Configuration(server.address))


def create(machine: Any, akhq: Any, stage: HerderHarness) -> Any:
    dto = machine.org.sourcelab.kafka.connect.apiclient.request.dto
    builder = dto.NewConnectorDefinition.newBuilder().withName(NAME)
    for key, value in SOURCE_CONFIG.items():
        builder = builder.withConfig(key, value)
    made = akhq.addConnector(builder.build())
    stage.wait_for_states(NAME, "RUNNING", "RUNNING", "RUNNING")
    return made


def test_a_connector_is_created_and_shown(machine: Any, akhq: Any, stage: HerderHarness) -> None:
    made = create(machine, akhq, stage)
    assert (made.getName(), made.getType()) == (NAME, "source")
    assert list(akhq.getConnectors()) == [NAME]
    assert akhq.getConnectorConfig(NAME)["topics"] == "orders,payments"
    status = akhq.getConnectorStatus(NAME)
    assert status.getConnector().get("state") == "RUNNING"
    assert [task.getId() for task in status.getTasks()] == [0, 1]
    assert akhq.getConnectorTaskStatus(NAME, 1).getState() == "RUNNING"
    assert len(akhq.getConnectorTasks(NAME)) == 2


def test_the_list_has_definitions_and_statuses(
    machine: Any, akhq: Any, stage: HerderHarness
) -> None:
    create(machine, akhq, stage)
    listed = akhq.getConnectorsWithAllExpandedMetadata()
    assert list(listed.getConnectorNames()) == [NAME]
    assert listed.getDefinitionForConnector(NAME).getConfig()["connector.class"] == PLUGIN
    assert listed.getStatusForConnector(NAME).getConnector().get("state") == "RUNNING"


def test_a_connector_is_changed_paused_resumed_restarted_and_deleted(
    machine: Any, akhq: Any, stage: HerderHarness
) -> None:
    create(machine, akhq, stage)
    changed = machine.java.util.HashMap()
    for key, value in {**SOURCE_CONFIG, "tasks.max": "1"}.items():
        changed.put(key, value)
    assert akhq.updateConnectorConfig(NAME, changed).getConfig()["tasks.max"] == "1"
    stage.wait_for_states(NAME, "RUNNING", "RUNNING")
    assert akhq.pauseConnector(NAME)
    stage.wait_for_states(NAME, "PAUSED", "PAUSED")
    assert akhq.resumeConnector(NAME)
    stage.wait_for_states(NAME, "RUNNING", "RUNNING")
    assert akhq.restartConnector(NAME)
    assert akhq.restartConnectorTask(NAME, 0)
    assert akhq.deleteConnector(NAME)
    assert list(akhq.getConnectors()) == []


def test_plugins_are_listed_and_forms_built(machine: Any, akhq: Any) -> None:
    assert PLUGIN in [plugin.getClassName() for plugin in akhq.getConnectorPlugins()]
    dto = machine.org.sourcelab.kafka.connect.apiclient.request.dto
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


def test_an_error_is_understood(machine: Any, akhq: Any) -> None:
    with pytest.raises(Exception, match="No status found for connector nope"):
        akhq.getConnectorStatus("nope")
    assert akhq.getConnectServerVersion().getVersion() == "4.3.0"

"""The connectors of a flow run with the file's config, never with an earlier one."""

from __future__ import annotations

import pytest

from sparkmirror.config.files.flow_rules import MirrorConnector
from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.config.files.properties import parse_properties
from sparkmirror.connect.herder.multi_flow_herder import FlowSwitches
from sparkmirror.errors import BadRequest
from sparkmirror.model import SourceAndTarget
from sparkmirror.worker.flow_connectors import (
    configure_connector,
    configure_connectors,
    flow_switches,
)
from tests.support.connect.in_memory_herder import running_herder

FLOW = SourceAndTarget("A", "B")
NAME = "MirrorSourceConnector"
CLUSTERS = "clusters=A,B\nA.bootstrap.servers=127.0.0.1:9\nB.bootstrap.servers=127.0.0.1:9\n"
ENABLED = f"{CLUSTERS}A->B.enabled=true\n"


def opened(text: str) -> MirrorMakerConfig:
    return MirrorMakerConfig.open(parse_properties(text.encode(), file="mm2.properties"), {})


def test_a_config_is_written_once_and_again_when_it_changes() -> None:
    with running_herder() as harness:
        for topics in ("orders", "orders", "payments"):
            file = opened(f"{ENABLED}A->B.topics={topics}\n")
            configure_connector(harness.herder, file, FLOW, MirrorConnector.SOURCE)
            assert harness.herder.connector_info(NAME).config["topics"] == topics


def test_a_faulty_config_of_an_enabled_connector_is_refused() -> None:
    with running_herder() as harness, pytest.raises(BadRequest, match="never closed"):
        file = opened(f"{ENABLED}A->B.topics=(\n")
        configure_connector(harness.herder, file, FLOW, MirrorConnector.SOURCE)


def test_connectors_that_cannot_be_configured_are_named_and_the_others_are_configured() -> None:
    with running_herder() as harness:
        faulty = opened(f"{ENABLED}A->B.groups=(\n")
        (failure,) = configure_connectors(harness.herder, faulty, FLOW)
        assert failure.startswith(
            "Failed to configure MirrorCheckpointConnector connector for A->B: "
        )
        assert set(harness.herder.connectors()) == {NAME, "MirrorHeartbeatConnector"}
        assert configure_connectors(harness.herder, opened(ENABLED), FLOW) == []


def test_a_disabled_connector_with_faults_does_not_go_on_with_its_earlier_config() -> None:
    disabled = opened(f"{CLUSTERS}A->B.topics=(\n")
    with running_herder() as harness:
        configure_connector(harness.herder, disabled, FLOW, MirrorConnector.SOURCE)
        assert NAME not in harness.herder.connectors()
        configure_connector(harness.herder, opened(ENABLED), FLOW, MirrorConnector.SOURCE)
        assert NAME in harness.herder.connectors()
        configure_connector(harness.herder, disabled, FLOW, MirrorConnector.SOURCE)
        assert NAME not in harness.herder.connectors()


def test_a_flow_that_the_file_does_not_enable_has_only_its_heartbeat_connector() -> None:
    file = opened(ENABLED)
    assert flow_switches(file, FLOW) == FlowSwitches()
    assert flow_switches(file, SourceAndTarget("B", "A")) == FlowSwitches(
        is_enabled=False,
        disabled_by={
            "MirrorSourceConnector": "B->A.enabled",
            "MirrorCheckpointConnector": "B->A.enabled",
        },
    )
    without_heartbeats = opened(f"{ENABLED}emit.heartbeats.enabled=false\n")
    assert flow_switches(without_heartbeats, FLOW) == FlowSwitches(
        disabled_by={"MirrorHeartbeatConnector": "A->B.emit.heartbeats.enabled"}
    )

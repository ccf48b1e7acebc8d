"""The connectors of a flow run with the file's config, never with an earlier one."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial

import pytest

from sparkmirror.config.files.flow_config_precedence import MirrorConnector
from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.config.files.properties import parse_properties
from sparkmirror.connect.herder.multi_flow_herder import FlowSwitches
from sparkmirror.errors import BadRequest, ClusterTimeout
from sparkmirror.mirror.offsets.records import RecordBytes
from sparkmirror.model import SourceAndTarget
from sparkmirror.worker.flow_connectors import (
    ConfigurationResult,
    configure_connector,
    configure_connectors,
    flow_switches,
    repeat_configuration,
)
from tests.support.connect.in_memory_herder import running_herder
from tests.support.connect.in_memory_stores import MemoryLog

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
        result = configure_connectors(harness.herder, faulty, FLOW)
        assert not result.retriable
        (failure,) = result.failures
        assert failure.startswith(
            "Failed to configure MirrorCheckpointConnector connector for A->B: "
        )
        assert set(harness.herder.connectors()) == {NAME, "MirrorHeartbeatConnector"}
        result = configure_connectors(harness.herder, opened(ENABLED), FLOW)
        assert result == ConfigurationResult()


def test_a_write_that_fails_is_tried_again_until_the_connectors_are_configured(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class FailingTwiceLog(MemoryLog):
        failures = 2

        def append_privileged(self, records: Sequence[RecordBytes]) -> None:
            if self.failures:
                self.failures -= 1
                raise ClusterTimeout("backup", "b1:9092: no answer to Produce within 8 s")
            super().append_privileged(records)

    with running_herder(config_log=FailingTwiceLog()) as harness:
        attempts = list(
            repeat_configuration(
                partial(configure_connectors, harness.herder, opened(ENABLED), FLOW),
                threading.Event(),
                pause_s=0.01,
            )
        )
        assert len(attempts) == 3
        assert attempts[-1] == ""
        assert "backup: b1:9092: no answer to Produce within 8 s" in attempts[0]
        assert len(harness.herder.connectors()) == 3
    assert caplog.text.count("Failed to configure MirrorHeartbeatConnector connector for") == 1


def test_configuration_ends_when_the_node_stops() -> None:
    stopping = threading.Event()
    failed = ConfigurationResult(failures=("backup: connection refused",), retriable=True)
    for text in repeat_configuration(lambda: failed, stopping, pause_s=50):
        assert text == "backup: connection refused"
        stopping.set()


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

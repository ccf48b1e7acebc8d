"""Several flows as one herder: names select the flow, and only the file changes connectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from sparkmirror.connect.herder.multi_flow_herder import FlowSwitches, MultiFlowHerder
from sparkmirror.errors import Conflict, Forbidden, NotFound
from sparkmirror.model import SourceAndTarget
from tests.support.connect.in_memory_herder import (
    HEARTBEAT_CONFIG,
    SOURCE_CONFIG,
    named_config,
    running_herder,
)
from tests.support.rest.scripted_herder import ScriptedHerder

THERE, BACK = SourceAndTarget("A", "B"), SourceAndTarget("B", "A")


@pytest.fixture
def flows() -> Iterator[MultiFlowHerder]:
    """Two flows that both have a heartbeat connector; only one has a source connector."""
    with ExitStack() as stack:
        harnesses = {flow: stack.enter_context(running_herder()) for flow in (THERE, BACK)}
        for harness in harnesses.values():
            harness.herder.put_connector_config(
                "heartbeat", named_config("heartbeat", HEARTBEAT_CONFIG)
            )
        harnesses[THERE].herder.put_connector_config("copy", named_config("copy", SOURCE_CONFIG))
        harnesses[THERE].wait_for_states("copy", "RUNNING", "RUNNING", "RUNNING")
        for harness in harnesses.values():
            harness.wait_for_states("heartbeat", "RUNNING", "RUNNING")
        yield MultiFlowHerder(
            {flow: harness.herder for flow, harness in harnesses.items()}, "mm2.properties"
        )


@pytest.fixture
def one_enabled_flow() -> Iterator[MultiFlowHerder]:
    """Two flows with both connectors; the file enables only heartbeats of the second one."""
    with ExitStack() as stack:
        harnesses = {flow: stack.enter_context(running_herder()) for flow in (THERE, BACK)}
        for flow, harness in harnesses.items():
            source = named_config("copy", SOURCE_CONFIG, enabled=str(flow == THERE).lower())
            harness.herder.put_connector_config("copy", source)
            harness.herder.put_connector_config(
                "heartbeat", named_config("heartbeat", HEARTBEAT_CONFIG)
            )
            harness.wait_for_states("heartbeat", "RUNNING", "RUNNING")
        harnesses[BACK].wait_for_states("copy", "RUNNING")
        yield MultiFlowHerder(
            {flow: harness.herder for flow, harness in harnesses.items()},
            "mm2.properties",
            {BACK: FlowSwitches(is_enabled=False, disabled_by={"copy": "B->A.enabled"})},
        )


def test_a_disabled_connector_is_not_listed_and_does_not_claim_to_run(
    one_enabled_flow: MultiFlowHerder,
) -> None:
    listed = {"A->B.copy", "A->B.heartbeat", "B->A.heartbeat"}
    assert set(one_enabled_flow.connectors()) == listed
    status = one_enabled_flow.connector_status("B->A.copy")
    assert (status.connector.state, status.tasks) == ("STOPPED", {})
    assert status.connector.trace == (
        "disabled: set B->A.enabled = true in mm2.properties and restart the node to run it"
    )


def test_a_name_alone_means_the_connector_of_the_enabled_flow(
    one_enabled_flow: MultiFlowHerder,
) -> None:
    assert one_enabled_flow.connector_info("copy").name == "A->B.copy"
    assert one_enabled_flow.connector_status("heartbeat").name == "A->B.heartbeat"


def test_every_connector_is_listed_under_its_flow(flows: MultiFlowHerder) -> None:
    assert set(flows.connectors()) == {"A->B.heartbeat", "A->B.copy", "B->A.heartbeat"}


def test_answers_contain_the_requested_name(flows: MultiFlowHerder) -> None:
    info = flows.connector_info("A->B.copy")
    assert info.name == "A->B.copy"
    assert {task.connector for task in info.tasks} == {"A->B.copy"}
    assert flows.connector_status("A->B.copy").name == "A->B.copy"
    assert flows.task_configs("A->B.copy")[0].id.connector == "A->B.copy"


def test_a_name_that_only_one_flow_has_is_accepted_without_the_flow(flows: MultiFlowHerder) -> None:
    assert flows.connector_info("copy").name == "A->B.copy"


def test_a_name_that_several_flows_have_is_a_conflict(flows: MultiFlowHerder) -> None:
    with pytest.raises(Conflict, match=r"say which of A->B\.heartbeat, B->A\.heartbeat"):
        flows.pause_connector("heartbeat")


def test_a_flow_is_paused_alone(flows: MultiFlowHerder) -> None:
    flows.pause_connector("B->A.heartbeat")
    assert flows.connector_status("A->B.heartbeat").connector.state == "RUNNING"


def test_an_unknown_name_is_not_found(flows: MultiFlowHerder) -> None:
    for name in ("unknown", "A->B.unknown", "A->C.heartbeat"):
        with pytest.raises(NotFound):
            flows.connector_info(name)


@pytest.mark.parametrize(
    "change",
    [
        lambda flows: flows.create_connector("new", {}, None),
        lambda flows: flows.put_connector_config("A->B.copy", {}),
        lambda flows: flows.patch_connector_config("A->B.copy", {}),
        lambda flows: flows.delete_connector("A->B.copy"),
    ],
    ids=["create", "put", "patch", "delete"],
)
def test_connectors_of_the_properties_file_cannot_be_changed(
    flows: MultiFlowHerder, change: Callable[[MultiFlowHerder], object]
) -> None:
    with pytest.raises(Forbidden, match=r"configured by mm2\.properties"):
        change(flows)


def test_the_worker_is_healthy_if_all_flows_are(flows: MultiFlowHerder) -> None:
    assert flows.health().status == "healthy"


def test_a_disabled_flow_that_waits_does_not_hide_the_problem_of_the_enabled_one() -> None:
    there, back = ScriptedHerder(), ScriptedHerder()
    there.set_response(200, {"status": "degraded", "message": "A: connection refused"})
    back.set_response(200, {"status": "starting", "message": "waits for its topics on A"})
    switches = {BACK: FlowSwitches(is_enabled=False)}
    flows = MultiFlowHerder({BACK: back, THERE: there}, "mm2.properties", switches)
    health = flows.health()
    assert health.status == "degraded"
    assert health.message.startswith("A->B: A: connection refused")

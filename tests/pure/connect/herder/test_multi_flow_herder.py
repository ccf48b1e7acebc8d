"""Several flows asked as one worker: names lead to the right herder, the file stays the master."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from sparkmirror.connect.herder.multi_flow_herder import MultiFlowHerder
from sparkmirror.errors import Conflict, Forbidden, NotFound
from sparkmirror.model import SourceAndTarget
from tests.support.connect.in_memory_herder import (
    HEARTBEAT_CONFIG,
    SOURCE_CONFIG,
    named_config,
    running_herder,
)

THERE, BACK = SourceAndTarget("A", "B"), SourceAndTarget("B", "A")


@pytest.fixture
def flows() -> Iterator[MultiFlowHerder]:
    """Two flows that both have a heartbeat connector; only one has a source connector."""
    with ExitStack() as stack:
        stages = {flow: stack.enter_context(running_herder()) for flow in (THERE, BACK)}
        for stage in stages.values():
            stage.herder.put_connector_config("beat", named_config("beat", HEARTBEAT_CONFIG))
        stages[THERE].herder.put_connector_config("copy", named_config("copy", SOURCE_CONFIG))
        stages[THERE].wait_for_states("copy", "RUNNING", "RUNNING", "RUNNING")
        for stage in stages.values():
            stage.wait_for_states("beat", "RUNNING", "RUNNING")
        yield MultiFlowHerder(
            {flow: stage.herder for flow, stage in stages.items()}, "mm2.properties"
        )


def test_every_connector_is_listed_under_its_flow(flows: MultiFlowHerder) -> None:
    assert set(flows.connectors()) == {"A->B.beat", "A->B.copy", "B->A.beat"}


def test_answers_carry_the_name_that_was_asked_for(flows: MultiFlowHerder) -> None:
    info = flows.connector_info("A->B.copy")
    assert info.name == "A->B.copy"
    assert {task.connector for task in info.tasks} == {"A->B.copy"}
    assert flows.connector_status("A->B.copy").name == "A->B.copy"
    assert flows.task_configs("A->B.copy")[0].id.connector == "A->B.copy"


def test_a_name_that_only_one_flow_has_will_do(flows: MultiFlowHerder) -> None:
    assert flows.connector_info("copy").name == "A->B.copy"


def test_a_name_that_several_flows_have_is_asked_back(flows: MultiFlowHerder) -> None:
    with pytest.raises(Conflict, match=r"say which of A->B\.beat, B->A\.beat"):
        flows.pause_connector("beat")


def test_a_flow_is_paused_alone(flows: MultiFlowHerder) -> None:
    flows.pause_connector("B->A.beat")
    assert flows.connector_status("A->B.beat").connector.state == "RUNNING"


def test_a_name_that_nobody_has_is_not_found(flows: MultiFlowHerder) -> None:
    for name in ("nobody", "A->B.nobody", "A->C.beat"):
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
def test_what_the_file_says_is_changed_in_the_file(
    flows: MultiFlowHerder, change: Callable[[MultiFlowHerder], object]
) -> None:
    with pytest.raises(Forbidden, match=r"configured by mm2\.properties"):
        change(flows)


def test_all_are_healthy_or_the_first_that_is_not_says_so(flows: MultiFlowHerder) -> None:
    assert flows.health().status == "healthy"

"""What other workers of the group may ask of a herder that leads."""

from __future__ import annotations

import pytest

from sparkmirror.errors import Conflict, NotFound
from tests.support.connect.in_memory_herder import (
    SOURCE_CONFIG,
    exactly_once_settings,
    named_config,
    running_herder,
)


def test_the_leader_runs_the_tasks_that_a_worker_has_planned_and_fences_them_once() -> None:
    with running_herder(exactly_once_settings()) as harness:
        herder = harness.herder
        herder.create_connector("c", named_config("c", SOURCE_CONFIG), None)
        harness.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")
        herder.put_task_configs("c", [herder.task_configs("c")[0].config])
        harness.wait_for_states("c", "RUNNING", "RUNNING")
        fenced = len(harness.fenced_ids)
        herder.fence_zombie_source_tasks("c")
        assert len(harness.fenced_ids) == fenced, "the tasks that run were fenced already"


def test_a_request_for_an_unknown_connector_is_not_found_as_in_connect() -> None:
    with running_herder() as harness:
        with pytest.raises(NotFound, match="^Connector nope not found$"):
            harness.herder.put_task_configs("nope", [])
        with pytest.raises(NotFound, match="^Connector nope not found$"):
            harness.herder.fence_zombie_source_tasks("nope")


def test_a_stopped_connector_gets_no_tasks_from_a_worker_that_does_not_know_it_yet() -> None:
    with running_herder() as harness:
        harness.herder.create_connector("c", named_config("c", SOURCE_CONFIG), None)
        harness.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")
        harness.herder.stop_connector("c")
        with pytest.raises(Conflict):
            harness.herder.put_task_configs("c", [{}])
        assert harness.herder.task_configs("c") == []

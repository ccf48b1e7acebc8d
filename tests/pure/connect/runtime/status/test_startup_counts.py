"""Starts of connectors and tasks that succeed and fail."""

from __future__ import annotations

from sparkmirror.connect.herder.mirror_monitor_api import StartupSummary
from sparkmirror.connect.runtime.status.startup_counts import StartupCounts
from tests.support.connect.in_memory_herder import (
    HEARTBEAT_CONFIG,
    SOURCE_CONFIG,
    WORKER_ID,
    named_config,
    poll_until,
    running_herder,
)


def test_a_report_of_what_runs_is_no_start() -> None:
    counts = StartupCounts()
    counts.on_started("c")
    counts.on_started("c")
    assert (counts.success, counts.failure) == (1, 0)
    counts.on_stopped("c")
    counts.on_started("c")
    assert counts.success == 2


def test_a_failure_of_what_runs_is_no_failed_start_and_the_next_one_is() -> None:
    counts = StartupCounts()
    counts.on_started("c")
    counts.on_failed("c")
    assert counts.failure == 0
    counts.on_failed("c")
    assert (counts.success, counts.failure) == (1, 1)


def test_a_herder_counts_the_starts_of_connectors_and_tasks() -> None:
    faulty = {**HEARTBEAT_CONFIG}
    del faulty["target.cluster.bootstrap.servers"]
    with running_herder() as harness:
        herder = harness.herder
        herder.put_connector_config("src", named_config("src", SOURCE_CONFIG))
        harness.wait_for_states("src", "RUNNING", "RUNNING", "RUNNING")
        herder.put_connector_config("hb", named_config("hb", HEARTBEAT_CONFIG))
        harness.wait_for_states("hb", "RUNNING", "RUNNING")
        found = herder.figures()
        assert found.worker_id == WORKER_ID
        assert found.connector_startups == StartupSummary(success=2)
        assert found.task_startups == StartupSummary(success=3)
        assert found.statuses.keys() == {"src", "hb"}
        assert found.assignment is not None and len(found.assignment.own_share.tasks) == 3
        herder.put_connector_config("faulty", named_config("faulty", faulty))
        harness.wait_for_states("faulty", "FAILED")
        herder.restart_task("src", 0)
        poll_until(lambda: herder.figures().task_startups.success == 4, "the task runs again")
        assert herder.figures().connector_startups == StartupSummary(success=2, failure=1)
        herder.pause_connector("hb")
        harness.wait_for_states("hb", "PAUSED", "PAUSED")
        herder.resume_connector("hb")
        harness.wait_for_states("hb", "RUNNING", "RUNNING")
        assert herder.figures().connector_startups.success == 3

"""The life of connectors and tasks as the herder leads it, with small connectors in memory."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from sparkmirror.connect.herder.herder import ConnectorOffset
from sparkmirror.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Forbidden,
    MirrorError,
    NotFound,
    OffsetsRejected,
    RequestFailed,
)
from sparkmirror.mirror.connect_topics.connect_configs import TargetState
from tests.support.connect.fake_connectors import START_HANGS, TASK_COUNT, TASK_START_FAILS
from tests.support.connect.in_memory_herder import (
    HEARTBEAT_CONFIG,
    SOURCE_CONFIG,
    WORKER_SETTINGS,
    HerderHarness,
    named_config,
    poll_until,
    running_herder,
)


def running(stage: HerderHarness, name: str = "c", **more: str) -> None:
    stage.herder.create_connector(name, named_config(name, SOURCE_CONFIG, **more), None)
    stage.wait_for_states(name, "RUNNING", "RUNNING", "RUNNING")


def test_a_created_connector_runs_with_its_tasks() -> None:
    with running_herder() as stage:
        put = stage.herder.create_connector("c", named_config("c", SOURCE_CONFIG), None)
        assert put.created
        assert put.info.tasks == ()
        stage.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")
        assert [task.id.task for task in stage.herder.task_configs("c")] == [0, 1]
        assert stage.herder.connector_info("c").type == "source"
        assert stage.herder.connectors() == ("c",)


def test_a_name_is_given_once() -> None:
    with running_herder() as stage:
        running(stage)
        with pytest.raises(AlreadyExists, match="Connector c already exists"):
            stage.herder.create_connector("c", named_config("c", SOURCE_CONFIG), None)


@pytest.mark.parametrize(
    ("state", "states"),
    [(TargetState.PAUSED, ("PAUSED",)), (TargetState.STOPPED, ("STOPPED",))],
    ids=["paused", "stopped"],
)
def test_a_connector_created_in_another_state_is_not_started(
    state: TargetState, states: tuple[str, ...]
) -> None:
    with running_herder() as stage:
        stage.herder.create_connector("c", named_config("c", SOURCE_CONFIG), state)
        stage.wait_for_states("c", *states)
        assert stage.probe.calls == []
        stage.herder.resume_connector("c")
        stage.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")


def test_pausing_stops_the_connector_and_holds_its_tasks() -> None:
    with running_herder() as stage:
        running(stage)
        stage.herder.pause_connector("c")
        stage.wait_for_states("c", "PAUSED", "PAUSED", "PAUSED")
        assert stage.probe.calls[-1] == "stop c"
        assert len(stage.probe.task_groups["c"]) == 1
        stage.herder.resume_connector("c")
        stage.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")
        assert len(stage.probe.task_groups["c"]) == 1


def test_stopping_removes_the_tasks_and_resuming_makes_them_again() -> None:
    with running_herder() as stage:
        running(stage)
        stage.herder.stop_connector("c")
        assert stage.herder.task_configs("c") == []
        stage.wait_for_states("c", "STOPPED")
        stage.herder.stop_connector("c")
        stage.herder.resume_connector("c")
        stage.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")


def test_a_deleted_connector_leaves_nothing_but_its_offsets() -> None:
    with running_herder() as stage:
        running(stage)
        poll_until(lambda: len(stage.herder.active_topics("c")) == 2, "topics")
        stage.herder.delete_connector("c")
        stage.wait_for_states("c")
        poll_until(lambda: stage.herder.active_topics("c") == [], "no topics")
        with pytest.raises(NotFound, match="No status found for task c-0"):
            stage.herder.task_status("c", 0)
        with pytest.raises(NotFound, match="Connector c not found"):
            stage.herder.delete_connector("c")


def test_a_name_can_be_taken_again_at_once() -> None:
    with running_herder() as stage:
        running(stage)
        for _ in range(5):
            stage.herder.delete_connector("c")
            stage.herder.create_connector("c", named_config("c", SOURCE_CONFIG), None)
        stage.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")
        groups = stage.probe.task_groups["c"]
        assert stage.probe.calls.count("stop tasks c") == len(groups) - 1


def test_another_config_starts_another_connector_and_gives_its_tasks_new_plans() -> None:
    with running_herder() as stage:
        running(stage)
        stage.herder.put_connector_config("c", named_config("c", SOURCE_CONFIG, tasks__max="4"))
        stage.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING", "RUNNING", "RUNNING")
        assert len(stage.probe.connectors["c"]) == 2
        assert [len(plan.tasks) for plan in stage.probe.task_group("c").plans] == [2, 4]
        stage.herder.put_connector_config("c", named_config("c", SOURCE_CONFIG, tasks__max="1"))
        stage.wait_for_states("c", "RUNNING", "RUNNING")


def test_another_class_runs_its_tasks_in_another_group() -> None:
    with running_herder() as stage:
        running(stage)
        stage.herder.put_connector_config("c", named_config("c", HEARTBEAT_CONFIG))
        stage.wait_for_states("c", "RUNNING", "RUNNING")
        assert len(stage.probe.task_groups["c"]) == 2
        assert "stop tasks c" in stage.probe.calls


def test_tasks_are_left_alone_when_nothing_has_changed() -> None:
    with running_herder() as stage:
        running(stage)
        before = len(stage.config_log.records)
        plans = stage.probe.calls.count("plan c")
        stage.probe.connector("c").context.request_task_reconfiguration()
        poll_until(lambda: stage.probe.calls.count("plan c") > plans, "planned again")
        stage.herder.put_connector_config("c", named_config("c", SOURCE_CONFIG))
        poll_until(lambda: stage.probe.calls.count("plan c") > plans + 1, "planned once more")
        stage.herder.pause_connector("c")
        stage.wait_for_states("c", "PAUSED", "PAUSED", "PAUSED")
        assert (
            len(stage.config_log.records) == before + 2
        )  # the same config, and the asked-for state
        assert len(stage.probe.task_group("c").plans) == 1


def test_a_patch_changes_some_keys_and_takes_others_away() -> None:
    with running_herder() as stage:
        running(stage, extra__key="v")
        info = stage.herder.patch_connector_config(
            "c", {"extra.key": None, "tasks.max": "3", "no.key": None}
        )
        assert info.config == named_config("c", {**SOURCE_CONFIG, "tasks.max": "3"})
        stage.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING", "RUNNING")


def test_a_config_with_faults_changes_nothing() -> None:
    with running_herder() as stage:
        running(stage)
        before = len(stage.config_log.records)
        with pytest.raises(BadRequest, match="contains the following 1 error"):
            stage.herder.patch_connector_config("c", {"tasks.max": "0"})
        assert len(stage.config_log.records) == before


def test_a_connector_that_cannot_start_has_failed_with_a_trace() -> None:
    with running_herder() as stage:
        config = named_config("c", HEARTBEAT_CONFIG)
        del config["target.cluster.bootstrap.servers"]
        stage.herder.create_connector("c", config, None)
        stage.wait_for_states("c", "FAILED")
        trace = stage.herder.connector_status("c").connector.trace or ""
        assert trace.startswith("org.apache.kafka.connect.errors.ConnectException: No resolvable")
        with pytest.raises(RequestFailed, match="Failed to start connector: c"):
            stage.herder.restart_connector("c")
        stage.herder.stop_connector("c")
        stage.wait_for_states("c", "STOPPED")
        assert stage.herder.connector_status("c").connector.trace is None


def test_an_error_that_a_connector_raises_later_makes_it_fail_but_not_its_tasks() -> None:
    with running_herder() as stage:
        running(stage)
        stage.probe.connector("c").context.raise_error(MirrorError("lost the source"))
        stage.wait_for_states("c", "FAILED", "RUNNING", "RUNNING")
        stage.herder.restart_connector("c")
        stage.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")


def test_a_connector_that_was_replaced_is_not_heard_any_more() -> None:
    with running_herder() as stage:
        running(stage)
        old = stage.probe.connector("c").context
        stage.herder.restart_connector("c")
        old.raise_error(MirrorError("too late"))
        old.request_task_reconfiguration()
        stage.herder.pause_connector("c")
        stage.wait_for_states("c", "PAUSED", "PAUSED", "PAUSED")
        assert old.is_cancelled()


def test_only_the_failed_task_is_restarted_if_that_is_asked() -> None:
    with running_herder() as stage:
        running(stage)
        stage.probe.task_group("c").fail(1, MirrorError("too large"))
        stage.wait_for_states("c", "RUNNING", "RUNNING", "FAILED")
        told = stage.herder.restart_connector_and_tasks("c", include_tasks=True, only_failed=True)
        assert told.connector.state == "RUNNING"
        assert [told.tasks[task].state for task in (0, 1)] == ["RUNNING", "RESTARTING"]
        assert "too large" in (told.tasks[1].trace or "")
        stage.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")
        assert stage.herder.task_status("c", 1).trace is None
        assert len(stage.probe.connectors["c"]) == 1
        assert "restart tasks c [1]" in stage.probe.calls


def test_a_task_is_restarted_by_its_number() -> None:
    with running_herder() as stage:
        running(stage)
        stage.herder.restart_task("c", 1)
        assert "restart tasks c [1]" in stage.probe.calls
        with pytest.raises(NotFound, match="Unknown task: c-2"):
            stage.herder.restart_task("c", 2)
        with pytest.raises(NotFound, match="Unknown connector: d"):
            stage.herder.restart_task("d", 0)
        stage.herder.stop_connector("c")
        stage.wait_for_states("c", "STOPPED")
        with pytest.raises(Conflict, match="no known leader URL"):
            stage.herder.restart_task("c", 1)


def test_a_restart_needs_a_connector() -> None:
    with running_herder() as stage:
        with pytest.raises(NotFound, match="Unknown connector: c"):
            stage.herder.restart_connector("c")
        with pytest.raises(NotFound, match="Unknown connector: c"):
            stage.herder.restart_connector_and_tasks("c", include_tasks=True, only_failed=False)


def test_tasks_that_cannot_be_started_have_failed_and_can_be_tried_again() -> None:
    with running_herder() as stage:
        stage.herder.create_connector(
            "c", named_config("c", SOURCE_CONFIG) | {TASK_START_FAILS: "yes"}, None
        )
        stage.wait_for_states("c", "RUNNING", "FAILED", "FAILED")
        status = stage.herder.task_status("c", 0)
        assert status.version is None
        assert "no slots for 2 tasks" in (status.trace or "")
        stage.herder.restart_connector_and_tasks("c", include_tasks=True, only_failed=True)
        poll_until(lambda: stage.probe.calls.count("start tasks c") == 2, "tried again")
        stage.wait_for_states("c", "RUNNING", "FAILED", "FAILED")
        stage.herder.patch_connector_config("c", {TASK_START_FAILS: None})
        stage.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")


def test_a_task_that_runs_with_trouble_says_so_in_its_status() -> None:
    with running_herder() as stage:
        running(stage)
        poll_until(lambda: len(stage.herder.active_topics("c")) == 2, "topics")
        stage.probe.task_group("c").listener.on_running(1, "orders-1 held: no leader")
        poll_until(
            lambda: stage.herder.task_status("c", 1).trace == "orders-1 held: no leader", "told"
        )
        assert stage.herder.task_status("c", 1).state == "RUNNING"
        written = len(stage.status_log.records)
        for _ in range(5):
            stage.probe.task_group("c").listener.on_running(1, "orders-1 held: no leader")
        stage.probe.task_group("c").listener.on_running(1)
        poll_until(lambda: stage.herder.task_status("c", 1).trace is None, "well again")
        assert len(stage.status_log.records) == written + 1


def test_a_connector_that_cannot_plan_says_so_and_is_asked_again() -> None:
    with running_herder() as stage:
        stage.probe.failing_connectors.add("c")
        stage.herder.create_connector("c", named_config("c", SOURCE_CONFIG), None)
        stage.wait_for_states("c", "RUNNING")
        poll_until(lambda: bool(stage.herder.connector_status("c").connector.trace), "told why")
        assert "TimeoutException: source: no answer" in str(
            stage.herder.connector_status("c").connector
        )
        stage.probe.failing_connectors.clear()
        stage.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")
        assert stage.herder.connector_status("c").connector.trace is None


def test_more_tasks_than_allowed_make_the_connector_fail() -> None:
    with running_herder() as stage:
        stage.herder.create_connector(
            "c", named_config("c", SOURCE_CONFIG) | {TASK_COUNT: "3"}, None
        )
        stage.wait_for_states("c", "FAILED")
        trace = stage.herder.connector_status("c").connector.trace or ""
        assert trace.startswith("org.apache.kafka.connect.runtime.TooManyTasksException: The conn")
        assert "has generated 3 tasks, which is greater than 2" in trace
        stage.herder.patch_connector_config("c", {"tasks.max.enforce": "false"})
        stage.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING", "RUNNING")


def test_a_connector_that_hangs_can_be_changed_and_deleted() -> None:
    with running_herder(replace(WORKER_SETTINGS, stop_timeout_s=0.1)) as stage:
        stage.herder.create_connector(
            "c", named_config("c", SOURCE_CONFIG) | {START_HANGS: "yes"}, None
        )
        poll_until(lambda: stage.probe.calls == ["start c"], "it hangs")
        stage.herder.patch_connector_config("c", {START_HANGS: None})
        stage.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")
        stage.herder.patch_connector_config("c", {START_HANGS: "yes"})
        poll_until(lambda: stage.probe.calls.count("start c") == 3, "it hangs again")
        assert stage.probe.connector("c").context.is_cancelled() is False
        stage.herder.delete_connector("c")
        assert stage.probe.connector("c").context.is_cancelled()
        stage.wait_for_states("c")
        stage.probe.release_hanging.set()
        poll_until(lambda: stage.probe.calls.count("stop c") == 3, "who was given up cleans up")


def test_a_failed_connector_is_not_said_to_run_because_it_cannot_plan() -> None:
    with running_herder() as stage:
        running(stage)
        stage.probe.failing_connectors.add("c")
        context = stage.probe.connector("c").context
        context.request_task_reconfiguration()
        poll_until(lambda: bool(stage.herder.connector_status("c").connector.trace), "told why")
        context.raise_error(MirrorError("lost"))
        context.request_task_reconfiguration()
        stage.wait_for_states("c", "FAILED", "RUNNING", "RUNNING")
        stage.probe.failing_connectors.clear()
        stage.herder.restart_connector("c")
        stage.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")
        assert stage.herder.connector_status("c").connector.trace is None


def test_patches_at_the_same_time_are_all_kept() -> None:
    with running_herder() as stage:
        stage.herder.create_connector("c", named_config("c", HEARTBEAT_CONFIG), TargetState.STOPPED)
        threads = [
            threading.Thread(
                target=stage.herder.patch_connector_config, args=("c", {f"key.{n}": str(n)})
            )
            for n in range(10)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        config = stage.herder.connector_info("c").config
        assert [config.get(f"key.{n}") for n in range(10)] == [str(n) for n in range(10)]


def test_a_restart_that_hangs_is_answered_in_time() -> None:
    with running_herder(replace(WORKER_SETTINGS, request_timeout_s=5.0)) as stage:
        running(stage)
        stage.herder.stop_connector("c")
        stage.herder.patch_connector_config("c", {START_HANGS: "yes"})
        stage.herder.resume_connector("c")
        with pytest.raises(RequestFailed, match=r"Request timed out\. The last operation"):
            stage.herder.restart_connector("c")


def test_topics_are_tracked_and_forgotten() -> None:
    with running_herder() as stage:
        running(stage)
        poll_until(lambda: set(stage.herder.active_topics("c")) == {"orders", "payments"}, "used")
        stage.herder.reset_active_topics("c")
        assert stage.herder.active_topics("c") == []
        stage.probe.task_group("c").listener.on_topics(0, ["orders"])
        poll_until(lambda: stage.herder.active_topics("c") == ["orders"], "used again")
        assert stage.herder.active_topics("nobody") == []


def test_tracking_of_topics_can_be_forbidden() -> None:
    with running_herder(replace(WORKER_SETTINGS, tracks_topics=False)) as stage:
        running(stage)
        with pytest.raises(Forbidden, match=r"Topic tracking is disabled\."):
            stage.herder.active_topics("c")
        with pytest.raises(Forbidden, match=r"Topic tracking is disabled\."):
            stage.herder.reset_active_topics("c")
    with (
        running_herder(replace(WORKER_SETTINGS, allows_topic_reset=False)) as stage,
        pytest.raises(Forbidden, match=r"Topic tracking reset is disabled\."),
    ):
        stage.herder.reset_active_topics("c")


PLACE = {"cluster": "source", "partition": 0, "topic": "orders"}


def test_offsets_are_changed_only_while_stopped() -> None:
    with running_herder() as stage:
        running(stage)
        change = [ConnectorOffset(partition=PLACE, offset={"offset": 3})]
        with pytest.raises(BadRequest, match="must be in the STOPPED state"):
            stage.herder.alter_connector_offsets("c", change)
        with pytest.raises(BadRequest, match="'/connectors/c/stop' endpoint"):
            stage.herder.reset_connector_offsets("c")
        stage.herder.stop_connector("c")
        assert stage.herder.alter_connector_offsets("c", change).endswith(
            "been altered successfully"
        )
        assert stage.probe.calls[-1] != "start tasks c"
        assert "stop tasks c" in stage.probe.calls  # it was waited for
        assert stage.herder.connector_offsets("c") == change
        with pytest.raises(OffsetsRejected, match="which cannot be negative"):
            stage.herder.alter_connector_offsets(
                "c", [ConnectorOffset(partition=PLACE, offset={"offset": -1})]
            )
        assert stage.herder.reset_connector_offsets("c").endswith("been reset successfully")
        assert stage.herder.connector_offsets("c") == []


def test_offsets_kept_elsewhere_too_are_mentioned() -> None:
    with running_herder() as stage:
        config = named_config("c", SOURCE_CONFIG) | {"test.offsets.elsewhere": "yes"}
        stage.herder.create_connector("c", config, TargetState.STOPPED)
        assert "manages offsets externally" in stage.herder.reset_connector_offsets("c")


def test_many_who_ask_at_once_are_all_answered() -> None:
    with running_herder() as stage:
        threads = [
            threading.Thread(
                target=stage.herder.create_connector,
                args=(f"c{n}", named_config(f"c{n}", HEARTBEAT_CONFIG), None),
            )
            for n in range(20)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(stage.herder.connectors()) == sorted(f"c{n}" for n in range(20))
        for n in range(20):
            stage.wait_for_states(f"c{n}", "RUNNING", "RUNNING")

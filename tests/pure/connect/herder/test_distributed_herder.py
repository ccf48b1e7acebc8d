"""The lifecycle of connectors and tasks, with fake connectors and stores in memory."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import ExitStack
from dataclasses import replace

import pytest

from sparkmirror.connect import start_turns
from sparkmirror.connect.herder.herder import ConnectorOffset
from sparkmirror.connect.runtime import worker_connectors
from sparkmirror.connect.runtime.status import task_status_writer
from sparkmirror.connect.start_turns import MAX_TURNS, WORKER_TURNS
from sparkmirror.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Forbidden,
    MirrorError,
    NotAuthorized,
    NotFound,
    OffsetsRejected,
    RequestFailed,
)
from sparkmirror.mirror.connect_topics.connect_configs import TargetState
from sparkmirror.mirror.connect_topics.connect_statuses import (
    ConnectStatus,
    LifecycleState,
    decode_status_record,
)
from tests.support.connect.divided_member import DividedMember
from tests.support.connect.fake_connectors import (
    START_HANGS,
    STOP_HANGS,
    TASK_COUNT,
    TASK_START_FAILS,
)
from tests.support.connect.in_memory_herder import (
    HEARTBEAT_CONFIG,
    SOURCE_CONFIG,
    WORKER_ID,
    WORKER_SETTINGS,
    HerderHarness,
    named_config,
    poll_until,
    running_herder,
)


def running(harness: HerderHarness, name: str = "c", **more: str) -> None:
    harness.herder.create_connector(name, named_config(name, SOURCE_CONFIG, **more), None)
    harness.wait_for_states(name, "RUNNING", "RUNNING", "RUNNING")


def test_a_created_connector_runs_with_its_tasks() -> None:
    with running_herder() as harness:
        put = harness.herder.create_connector("c", named_config("c", SOURCE_CONFIG), None)
        assert put.created
        assert put.info.tasks == ()
        harness.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")
        assert [task.id.task for task in harness.herder.task_configs("c")] == [0, 1]
        assert harness.herder.connector_info("c").type == "source"
        assert harness.herder.connectors() == ("c",)


def test_creating_an_existing_connector_is_rejected() -> None:
    with running_herder() as harness:
        running(harness)
        with pytest.raises(AlreadyExists, match="Connector c already exists"):
            harness.herder.create_connector("c", named_config("c", SOURCE_CONFIG), None)


@pytest.mark.parametrize(
    ("state", "states"),
    [(TargetState.PAUSED, ("PAUSED",)), (TargetState.STOPPED, ("STOPPED",))],
    ids=["paused", "stopped"],
)
def test_a_connector_created_in_another_state_is_not_started(
    state: TargetState, states: tuple[str, ...]
) -> None:
    with running_herder() as harness:
        harness.herder.create_connector("c", named_config("c", SOURCE_CONFIG), state)
        harness.wait_for_states("c", *states)
        assert harness.probe.calls == []
        harness.herder.resume_connector("c")
        harness.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")


def test_pausing_stops_the_connector_and_pauses_its_tasks() -> None:
    with running_herder() as harness:
        running(harness)
        harness.herder.pause_connector("c")
        harness.wait_for_states("c", "PAUSED", "PAUSED", "PAUSED")
        assert harness.probe.calls[-1] == "stop c"
        assert len(harness.probe.task_groups["c"]) == 1
        harness.herder.resume_connector("c")
        harness.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")
        assert len(harness.probe.task_groups["c"]) == 1


def test_stopping_removes_the_tasks_and_resuming_creates_them_again() -> None:
    with running_herder() as harness:
        running(harness)
        harness.herder.stop_connector("c")
        assert harness.herder.task_configs("c") == []
        harness.wait_for_states("c", "STOPPED")
        harness.herder.stop_connector("c")
        harness.herder.resume_connector("c")
        harness.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")


def test_end_of_tasks_is_reported_with_what_was_requested() -> None:
    with running_herder() as harness:
        running(harness)
        harness.ended_tasks.clear()
        harness.herder.pause_connector("c")
        harness.wait_for_states("c", "PAUSED", "PAUSED", "PAUSED")
        assert harness.ended_tasks == []
        harness.herder.stop_connector("c")
        harness.wait_for_states("c", "STOPPED")
        poll_until(lambda: ("c", TargetState.STOPPED) in harness.ended_tasks, "the stop")
        harness.herder.delete_connector("c")
        poll_until(lambda: harness.ended_tasks[-1] == ("c", None), "the deletion")


def test_a_worker_with_tasks_only_reads_that_a_connector_is_stopped_and_that_it_is_not() -> None:
    with running_herder(member=DividedMember()) as harness:
        harness.herder.create_connector("c", named_config("c", SOURCE_CONFIG), None)
        harness.herder.put_task_configs("c", [SOURCE_CONFIG, SOURCE_CONFIG])
        poll_until(lambda: harness.probe.running("c") == {1}, "the task of this worker")
        harness.ended_tasks.clear()
        harness.herder.stop_connector("c")
        poll_until(lambda: harness.probe.running("c") == set(), "the end of the task")
        poll_until(lambda: ("c", TargetState.STOPPED) in harness.ended_tasks, "the stop")
        harness.herder.resume_connector("c")
        poll_until(lambda: ("c", TargetState.STARTED) in harness.ended_tasks, "the resumption")
        assert ("c", None) not in harness.ended_tasks
        harness.herder.delete_connector("c")
        poll_until(lambda: harness.ended_tasks[-1] == ("c", None), "the deletion")


def test_a_deleted_connector_leaves_nothing_but_its_offsets() -> None:
    with running_herder() as harness:
        running(harness)
        poll_until(lambda: len(harness.herder.active_topics("c")) == 2, "topics")
        harness.herder.delete_connector("c")
        harness.wait_for_states("c")
        poll_until(lambda: harness.herder.active_topics("c") == [], "no topics")
        poll_until(lambda: not has_task_status(harness), "no status of task c-0")
        with pytest.raises(NotFound, match="Connector c not found"):
            harness.herder.delete_connector("c")


def has_task_status(harness: HerderHarness) -> bool:
    try:
        harness.herder.task_status("c", 0)
    except NotFound as error:
        assert str(error) == "No status found for task c-0"
        return False
    return True


def test_a_connector_can_be_deleted_and_created_again_at_once() -> None:
    with running_herder() as harness:
        running(harness)
        for _ in range(4):
            harness.herder.delete_connector("c")
            harness.herder.create_connector("c", named_config("c", SOURCE_CONFIG), None)
        harness.herder.delete_connector("c")
        last = named_config("c", SOURCE_CONFIG, tasks__max="4")  # its statuses are not old ones
        harness.herder.create_connector("c", last, None)
        harness.wait_for_states("c", *["RUNNING"] * 5)
        groups = harness.probe.task_groups["c"]
        assert harness.probe.calls.count("stop tasks c") == len(groups) - 1


def test_another_config_starts_another_connector_and_gives_its_tasks_new_plans() -> None:
    with running_herder() as harness:
        running(harness)
        harness.herder.put_connector_config("c", named_config("c", SOURCE_CONFIG, tasks__max="4"))
        harness.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING", "RUNNING", "RUNNING")
        assert len(harness.probe.connectors["c"]) == 2
        assert [len(plan.tasks) for plan in harness.probe.task_group("c").plans] == [2, 4]
        harness.herder.put_connector_config("c", named_config("c", SOURCE_CONFIG, tasks__max="1"))
        harness.wait_for_states("c", "RUNNING", "RUNNING")


def test_another_class_runs_its_tasks_in_another_group() -> None:
    with running_herder() as harness:
        running(harness)
        harness.herder.put_connector_config("c", named_config("c", HEARTBEAT_CONFIG))
        harness.wait_for_states("c", "RUNNING", "RUNNING")
        assert len(harness.probe.task_groups["c"]) == 2
        assert "stop tasks c" in harness.probe.calls


def test_tasks_keep_running_if_their_configs_have_not_changed() -> None:
    with running_herder() as harness:
        running(harness)
        before = len(harness.config_log.records)
        plans = harness.probe.calls.count("plan c")
        harness.probe.connector("c").context.request_task_reconfiguration()
        poll_until(lambda: harness.probe.calls.count("plan c") > plans, "planned again")
        harness.herder.put_connector_config("c", named_config("c", SOURCE_CONFIG))
        poll_until(lambda: harness.probe.calls.count("plan c") > plans + 1, "planned once more")
        harness.herder.pause_connector("c")
        harness.wait_for_states("c", "PAUSED", "PAUSED", "PAUSED")
        assert (
            len(harness.config_log.records) == before + 2
        )  # the same config, and the target state
        assert len(harness.probe.task_group("c").plans) == 1


def test_a_patch_changes_some_keys_and_removes_others() -> None:
    with running_herder() as harness:
        running(harness, extra__key="v")
        info = harness.herder.patch_connector_config(
            "c", {"extra.key": None, "tasks.max": "3", "no.key": None}
        )
        assert info.config == named_config("c", {**SOURCE_CONFIG, "tasks.max": "3"})
        harness.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING", "RUNNING")


def test_an_invalid_config_changes_nothing() -> None:
    with running_herder() as harness:
        running(harness)
        before = len(harness.config_log.records)
        with pytest.raises(BadRequest, match="contains the following 1 error"):
            harness.herder.patch_connector_config("c", {"tasks.max": "0"})
        assert len(harness.config_log.records) == before


def test_a_connector_that_cannot_start_is_failed_with_a_trace() -> None:
    with running_herder() as harness:
        config = named_config("c", HEARTBEAT_CONFIG)
        del config["target.cluster.bootstrap.servers"]
        harness.herder.create_connector("c", config, None)
        harness.wait_for_states("c", "FAILED")
        trace = harness.herder.connector_status("c").connector.trace or ""
        assert trace.startswith("org.apache.kafka.connect.errors.ConnectException: No resolvable")
        with pytest.raises(RequestFailed, match="Failed to start connector: c"):
            harness.herder.restart_connector("c")
        harness.herder.stop_connector("c")
        harness.wait_for_states("c", "STOPPED")
        assert harness.herder.connector_status("c").connector.trace is None


def test_an_error_that_a_connector_raises_later_makes_it_fail_but_not_its_tasks() -> None:
    with running_herder() as harness:
        running(harness)
        harness.probe.connector("c").context.raise_error(MirrorError("lost the source"))
        harness.wait_for_states("c", "FAILED", "RUNNING", "RUNNING")
        harness.herder.restart_connector("c")
        harness.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")


def test_events_of_a_replaced_instance_are_ignored() -> None:
    with running_herder() as harness:
        running(harness)
        old = harness.probe.connector("c").context
        harness.herder.restart_connector("c")
        old.raise_error(MirrorError("too late"))
        old.request_task_reconfiguration()
        harness.herder.pause_connector("c")
        harness.wait_for_states("c", "PAUSED", "PAUSED", "PAUSED")
        assert old.is_cancelled()


def test_a_restart_of_failed_tasks_restarts_only_those() -> None:
    with running_herder() as harness:
        running(harness)
        harness.probe.task_group("c").fail(1, MirrorError("too large"))
        harness.wait_for_states("c", "RUNNING", "RUNNING", "FAILED")
        status = harness.herder.restart_connector_and_tasks(
            "c", include_tasks=True, only_failed=True
        )
        assert status.connector.state == "RUNNING"
        assert [status.tasks[task].state for task in (0, 1)] == ["RUNNING", "RESTARTING"]
        assert "too large" in (status.tasks[1].trace or "")
        harness.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")
        assert harness.herder.task_status("c", 1).trace is None
        assert len(harness.probe.connectors["c"]) == 1
        assert "restart tasks c [1]" in harness.probe.calls


def test_a_task_is_restarted_by_its_number() -> None:
    with running_herder() as harness:
        running(harness)
        harness.herder.restart_task("c", 1)
        assert "restart tasks c [1]" in harness.probe.calls
        with pytest.raises(NotFound, match="Unknown task: c-2"):
            harness.herder.restart_task("c", 2)
        with pytest.raises(NotFound, match="Unknown connector: d"):
            harness.herder.restart_task("d", 0)
        harness.herder.stop_connector("c")
        harness.wait_for_states("c", "STOPPED")
        with pytest.raises(Conflict, match="no known leader URL"):
            harness.herder.restart_task("c", 1)


def test_a_task_that_reports_the_same_after_its_restart_is_running_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with running_herder() as harness:
        running(harness)
        group = harness.probe.task_group("c")
        monkeypatch.setattr(group, "restart", lambda _plan, _tasks: None)
        group.listener.on_running(1)
        harness.herder.restart_task("c", 1)
        harness.wait_for_states("c", "RUNNING", "RUNNING", "RESTARTING")
        group.listener.on_running(1)
        harness.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")


def test_a_status_that_another_worker_writes_late_is_corrected_for_an_own_task_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_connectors, "STATUS_CHECK_INTERVAL_S", 0.05)
    with running_herder(member=DividedMember()) as harness:
        harness.herder.create_connector("c", named_config("c", SOURCE_CONFIG), None)
        harness.herder.put_task_configs("c", [SOURCE_CONFIG, SOURCE_CONFIG])
        poll_until(lambda: task_state(harness, 1) == ("RUNNING", WORKER_ID), "the own task")
        late = ConnectStatus(
            connector="c",
            task=1,
            state=LifecycleState.UNASSIGNED,
            worker_id="cut-off:8083",
            generation=0,
        )
        harness.status_log.append([replace(late, task=0).encode(), late.encode()])
        poll_until(lambda: task_state(harness, 1) == ("RUNNING", WORKER_ID), "the correction")
        written = [change for change in map(decode_status_record, harness.status_log.records)
                   if isinstance(change, ConnectStatus) and change.task == 1]  # fmt: skip
        assert [(status.state, status.worker_id) for status in written[-2:]] == [
            (LifecycleState.UNASSIGNED, "cut-off:8083"),
            (LifecycleState.RUNNING, WORKER_ID),
        ]
        assert task_state(harness, 0) == ("UNASSIGNED", "cut-off:8083")
        newer = replace(late, worker_id="newer:8083", generation=99)
        harness.status_log.append([newer.encode()])
        time.sleep(0.2)
        assert task_state(harness, 1) == ("UNASSIGNED", "newer:8083"), "that is a newer owner"


def test_tasks_that_wait_for_their_turn_do_not_start_after_another_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(start_turns, "MAX_TURN_S", 60.0)
    with running_herder() as harness, ExitStack() as taken:
        for _ in range(MAX_TURNS):
            taken.enter_context(WORKER_TURNS.turn())
        harness.herder.create_connector("c", named_config("c", SOURCE_CONFIG), None)
        poll_until(lambda: len(harness.herder.task_configs("c")) == 2, "the task configs")
        harness.herder.stop_connector("c")
        harness.wait_for_states("c", "STOPPED")
        taken.close()
        harness.herder.delete_connector("c")
        harness.wait_for_states("c")
        assert "start tasks c" not in harness.probe.calls
        running(harness)


def task_state(harness: HerderHarness, task: int) -> tuple[str, str]:
    try:
        status = harness.herder.task_status("c", task)
    except NotFound:
        return "", ""
    return status.state, status.worker_id


def test_a_restart_needs_a_connector() -> None:
    with running_herder() as harness:
        with pytest.raises(NotFound, match="Unknown connector: c"):
            harness.herder.restart_connector("c")
        with pytest.raises(NotFound, match="Unknown connector: c"):
            harness.herder.restart_connector_and_tasks("c", include_tasks=True, only_failed=False)


def test_tasks_that_cannot_start_are_failed_and_can_be_restarted() -> None:
    with running_herder() as harness:
        harness.herder.create_connector(
            "c", named_config("c", SOURCE_CONFIG) | {TASK_START_FAILS: "yes"}, None
        )
        harness.wait_for_states("c", "RUNNING", "FAILED", "FAILED")
        status = harness.herder.task_status("c", 0)
        assert status.version is None
        assert "no slots for 2 tasks" in (status.trace or "")
        harness.herder.restart_connector_and_tasks("c", include_tasks=True, only_failed=True)
        poll_until(lambda: harness.probe.calls.count("start tasks c") == 2, "tried again")
        harness.wait_for_states("c", "RUNNING", "FAILED", "FAILED")
        harness.herder.patch_connector_config("c", {TASK_START_FAILS: None})
        harness.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")


def test_the_problem_of_a_running_task_is_in_its_status_and_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, task_status_writer.__name__)
    with running_herder() as harness:
        running(harness)
        poll_until(lambda: len(harness.herder.active_topics("c")) == 2, "topics")
        harness.probe.task_group("c").listener.on_running(1, "orders-1 held: no leader")
        poll_until(
            lambda: harness.herder.task_status("c", 1).trace == "orders-1 held: no leader",
            "the problem in the status",
        )
        assert harness.herder.task_status("c", 1).state == "RUNNING"
        written = len(harness.status_log.records)
        for _ in range(5):
            harness.probe.task_group("c").listener.on_running(1, "orders-1 held: no leader")
        harness.probe.task_group("c").listener.on_running(1)
        poll_until(
            lambda: harness.herder.task_status("c", 1).trace is None, "the problem to be solved"
        )
        assert len(harness.status_log.records) == written + 1
    logged = [one.getMessage() for one in caplog.records if one.name == task_status_writer.__name__]
    assert logged == [
        "Task c-1 has a problem: orders-1 held: no leader",
        "Task c-1 no longer has the problem: orders-1 held: no leader",
    ]


def connector_trace(harness: HerderHarness) -> str:
    return harness.herder.connector_status("c").connector.trace or ""


def test_the_problem_of_a_running_connector_is_in_its_status_until_it_is_solved() -> None:
    with running_herder() as harness:
        running(harness)
        poll_until(lambda: len(harness.herder.active_topics("c")) == 2, "topics")
        context = harness.probe.connector("c").context
        written = len(harness.status_log.records)
        for _ in range(5):
            context.report_problem("primary: connection refused")
        poll_until(
            lambda: connector_trace(harness) == "primary: connection refused",
            "the problem in the status",
        )
        assert harness.states("c") == ["RUNNING", "RUNNING", "RUNNING"]
        context.report_problem("")
        poll_until(lambda: connector_trace(harness) == "", "the problem to be solved")
        assert len(harness.status_log.records) == written + 2


def test_a_problem_does_not_outlive_the_instance_that_reported_it() -> None:
    with running_herder() as harness:
        running(harness)
        paused = harness.probe.connector("c").context
        paused.report_problem("primary: connection refused")
        harness.herder.pause_connector("c")
        harness.wait_for_states("c", "PAUSED", "PAUSED", "PAUSED")
        assert connector_trace(harness) == ""
        harness.herder.resume_connector("c")
        paused.report_problem("too late")
        harness.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")
        assert connector_trace(harness) == ""
        harness.probe.connector("c").context.report_problem("primary: connection refused")
        harness.probe.connector("c").context.raise_error(MirrorError("lost"))
        harness.probe.connector("c").context.report_problem("primary: no answer")
        poll_until(lambda: harness.states("c")[0] == "FAILED", "FAILED")
        assert "lost" in connector_trace(harness)
        harness.herder.restart_connector("c")
        harness.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")
        assert connector_trace(harness) == ""


def test_a_connector_that_does_not_know_its_tasks_yet_keeps_those_it_has() -> None:
    with running_herder() as harness:
        running(harness)
        harness.probe.waiting_connectors.add("c")
        harness.herder.restart_connector("c")
        poll_until(lambda: harness.probe.calls.count("plan c") == 2, "the question")
        context = harness.probe.connector("c").context
        context.report_problem("primary: connection refused")
        poll_until(lambda: "refused" in connector_trace(harness), "the problem in the status")
        assert harness.states("c") == ["RUNNING", "RUNNING", "RUNNING"]
        harness.probe.waiting_connectors.clear()
        harness.probe.partitions = harness.probe.partitions[:1]
        context.report_problem("")
        context.request_task_reconfiguration()
        harness.wait_for_states("c", "RUNNING", "RUNNING")
        assert harness.probe.calls.count("plan c") == 3, "nothing is asked without a request"


def test_an_error_of_task_configs_is_shown_in_the_status_and_the_call_is_repeated() -> None:
    with running_herder() as harness:
        harness.probe.failing_connectors.add("c")
        harness.herder.create_connector("c", named_config("c", SOURCE_CONFIG), None)
        harness.wait_for_states("c", "RUNNING")
        poll_until(
            lambda: bool(harness.herder.connector_status("c").connector.trace),
            "the trace in the status",
        )
        assert "TimeoutException: source: no answer" in str(
            harness.herder.connector_status("c").connector
        )
        harness.probe.failing_connectors.clear()
        harness.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")
        assert harness.herder.connector_status("c").connector.trace is None


def test_task_configs_that_cannot_be_written_stay_in_the_status_until_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with running_herder() as harness:
        running(harness)

        def refuse(records: object) -> None:
            raise NotAuthorized("B", "grant Write on the topic")

        before = len(harness.status_log.records)
        with monkeypatch.context() as patched:
            patched.setattr(harness.config_log, "append", refuse)
            harness.probe.partitions = harness.probe.partitions[:1]
            harness.probe.connector("c").context.request_task_reconfiguration()
            poll_until(lambda: harness.probe.calls.count("plan c") >= 4, "two more tries")
        harness.wait_for_states("c", "RUNNING", "RUNNING")
        assert harness.herder.connector_status("c").connector.trace is None
        written = [decode_status_record(one) for one in harness.status_log.records[before:]]
        traces = [
            one.trace for one in written if isinstance(one, ConnectStatus) and one.task is None
        ]
        assert traces == ["B: grant Write on the topic", None], "it did not come and go"


def test_more_tasks_than_allowed_make_the_connector_fail() -> None:
    with running_herder() as harness:
        harness.herder.create_connector(
            "c", named_config("c", SOURCE_CONFIG) | {TASK_COUNT: "3"}, None
        )
        harness.wait_for_states("c", "FAILED")
        trace = harness.herder.connector_status("c").connector.trace or ""
        assert trace.startswith("org.apache.kafka.connect.runtime.TooManyTasksException: The conn")
        assert "has generated 3 tasks, which is greater than 2" in trace
        harness.herder.patch_connector_config("c", {"tasks.max.enforce": "false"})
        harness.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING", "RUNNING")


def test_a_connector_that_hangs_can_be_changed_and_deleted() -> None:
    with running_herder(replace(WORKER_SETTINGS, stop_timeout_s=0.1)) as harness:
        harness.herder.create_connector(
            "c", named_config("c", SOURCE_CONFIG) | {START_HANGS: "yes"}, None
        )
        poll_until(lambda: harness.probe.calls == ["start c"], "it hangs")
        harness.herder.patch_connector_config("c", {START_HANGS: None})
        harness.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")
        harness.herder.patch_connector_config("c", {START_HANGS: "yes"})
        poll_until(lambda: harness.probe.calls.count("start c") == 3, "it hangs again")
        assert harness.probe.connector("c").context.is_cancelled() is False
        harness.herder.delete_connector("c")
        poll_until(harness.probe.connector("c").context.is_cancelled, "the cancelled call")
        harness.wait_for_states("c")
        harness.probe.release_hanging.set()
        poll_until(
            lambda: harness.probe.calls.count("stop c") == 3, "the abandoned thread to clean up"
        )


def test_a_connector_whose_stop_ends_too_late_is_started_once() -> None:
    with running_herder(replace(WORKER_SETTINGS, stop_timeout_s=0.1)) as harness:
        running(harness, **{STOP_HANGS: "yes"})
        hung = [one for one in threading.enumerate() if one.name == "connector-thread-c"]
        harness.herder.patch_connector_config("c", {STOP_HANGS: None})
        poll_until(lambda: harness.probe.calls.count("start c") == 2, "another thread starts it")
        harness.probe.release_hanging.set()
        poll_until(lambda: not any(one.is_alive() for one in hung), "the end of the hung thread")
        assert harness.probe.calls.count("start c") == 2


def test_an_error_of_task_configs_does_not_make_a_failed_connector_running() -> None:
    with running_herder() as harness:
        running(harness)
        harness.probe.failing_connectors.add("c")
        context = harness.probe.connector("c").context
        context.request_task_reconfiguration()
        poll_until(
            lambda: bool(harness.herder.connector_status("c").connector.trace),
            "the trace in the status",
        )
        context.raise_error(MirrorError("lost"))
        context.request_task_reconfiguration()
        harness.wait_for_states("c", "FAILED", "RUNNING", "RUNNING")
        harness.probe.failing_connectors.clear()
        harness.herder.restart_connector("c")
        harness.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")
        assert harness.herder.connector_status("c").connector.trace is None


def test_simultaneous_patches_are_all_applied() -> None:
    with running_herder() as harness:
        harness.herder.create_connector(
            "c", named_config("c", HEARTBEAT_CONFIG), TargetState.STOPPED
        )
        threads = [
            threading.Thread(
                target=harness.herder.patch_connector_config, args=("c", {f"key.{n}": str(n)})
            )
            for n in range(10)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        config = harness.herder.connector_info("c").config
        assert [config.get(f"key.{n}") for n in range(10)] == [str(n) for n in range(10)]


def test_a_restart_that_hangs_is_answered_in_time() -> None:
    with running_herder(replace(WORKER_SETTINGS, request_timeout_s=0.2)) as harness:
        running(harness)
        harness.herder.stop_connector("c")
        harness.herder.patch_connector_config("c", {START_HANGS: "yes"})
        harness.herder.resume_connector("c")
        poll_until(lambda: harness.probe.calls.count("start c") == 2, "it hangs")
        with pytest.raises(RequestFailed, match=r"Request timed out\. The (last op|worker is cur)"):
            harness.herder.restart_connector("c")


def test_active_topics_are_tracked_and_reset() -> None:
    with running_herder() as harness:
        running(harness)
        poll_until(lambda: set(harness.herder.active_topics("c")) == {"orders", "payments"}, "used")
        harness.herder.reset_active_topics("c")
        assert harness.herder.active_topics("c") == []
        harness.probe.task_group("c").listener.on_topics(0, ["orders"])
        poll_until(lambda: harness.herder.active_topics("c") == ["orders"], "used again")
        assert harness.herder.active_topics("unknown") == []


def test_topic_tracking_can_be_disabled() -> None:
    with running_herder(replace(WORKER_SETTINGS, tracks_topics=False)) as harness:
        running(harness)
        with pytest.raises(Forbidden, match=r"Topic tracking is disabled\."):
            harness.herder.active_topics("c")
        with pytest.raises(Forbidden, match=r"Topic tracking is disabled\."):
            harness.herder.reset_active_topics("c")
    with (
        running_herder(replace(WORKER_SETTINGS, allows_topic_reset=False)) as harness,
        pytest.raises(Forbidden, match=r"Topic tracking reset is disabled\."),
    ):
        harness.herder.reset_active_topics("c")


PARTITION = {"cluster": "source", "partition": 0, "topic": "orders"}


def test_offsets_are_changed_only_while_stopped() -> None:
    with running_herder() as harness:
        running(harness)
        change = [ConnectorOffset(partition=PARTITION, offset={"offset": 3})]
        with pytest.raises(BadRequest, match="must be in the STOPPED state"):
            harness.herder.alter_connector_offsets("c", change)
        with pytest.raises(BadRequest, match="'/connectors/c/stop' endpoint"):
            harness.herder.reset_connector_offsets("c")
        harness.herder.stop_connector("c")
        assert harness.herder.alter_connector_offsets("c", change).endswith(
            "been altered successfully"
        )
        assert harness.probe.calls[-1] != "start tasks c"
        assert "stop tasks c" in harness.probe.calls  # the request waited for it
        assert harness.herder.connector_offsets("c") == change
        with pytest.raises(OffsetsRejected, match="which cannot be negative"):
            harness.herder.alter_connector_offsets(
                "c", [ConnectorOffset(partition=PARTITION, offset={"offset": -1})]
            )
        assert harness.herder.reset_connector_offsets("c").endswith("been reset successfully")
        assert harness.herder.connector_offsets("c") == []


def test_the_answer_mentions_offsets_that_the_connector_keeps_itself() -> None:
    with running_herder() as harness:
        config = named_config("c", SOURCE_CONFIG) | {"test.offsets.elsewhere": "yes"}
        harness.herder.create_connector("c", config, TargetState.STOPPED)
        assert "manages offsets externally" in harness.herder.reset_connector_offsets("c")


def test_simultaneous_requests_are_all_answered() -> None:
    with running_herder() as harness:
        threads = [
            threading.Thread(
                target=harness.herder.create_connector,
                args=(f"c{n}", named_config(f"c{n}", HEARTBEAT_CONFIG), None),
            )
            for n in range(20)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(harness.herder.connectors()) == sorted(f"c{n}" for n in range(20))
        for n in range(20):
            harness.wait_for_states(f"c{n}", "RUNNING", "RUNNING")

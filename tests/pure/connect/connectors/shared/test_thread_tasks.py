"""Tasks as threads: which states they report."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

import pytest

from sparkmirror.connect.connectors.shared import thread_tasks
from sparkmirror.connect.connectors.shared.thread_tasks import RetryingClient, ThreadTaskGroup
from sparkmirror.connect.task_group import TaskPlan
from sparkmirror.errors import CallCancelled, ClusterError, ClusterUnavailable
from tests.support.connect.connector_context import RecordingListener
from tests.support.connect.task_plans import plan_of_all_tasks
from tests.support.waiting import wait_until


class FakeRetryingClient:
    """A client whose call waits until it is cancelled."""

    def __init__(self) -> None:
        self.on_retry: Callable[[ClusterError], None] = lambda error: None
        self._cancelled = threading.Event()

    def call(self, error: ClusterError) -> None:
        """Retry because of the error, for ever."""
        self.on_retry(error)
        assert self._cancelled.wait(50)
        raise CallCancelled("A")

    def cancel(self) -> None:
        self._cancelled.set()


class CountingTask:
    """A PeriodicTask that counts its runs and calls a function of the test in each."""

    def __init__(self, config: Mapping[str, str], on_run: Callable[[int], None]) -> None:
        self.config = config
        self.run_count = 0
        self.is_closed = False
        self.client = FakeRetryingClient()
        self._on_run = on_run

    def clients(self) -> Sequence[RetryingClient]:
        return [self.client]

    def start(self) -> None:
        pass

    def run_due(self) -> None:
        self.run_count += 1
        self._on_run(self.run_count)

    def next_run_in_s(self) -> float:
        return 0.01

    def current_problem(self) -> str:
        return self.config.get("problem", "")

    def written_topics(self) -> frozenset[str]:
        return frozenset({"topic"})

    def reconfigure(self, config: Mapping[str, str]) -> bool:
        if config.get("restart"):
            return False
        self.config = config
        return True

    def close(self) -> None:
        self.is_closed = True


class TaskGroupHarness:
    """A task group, and all instances of its tasks."""

    def __init__(self, on_run: Callable[[int], None] = lambda _: None) -> None:
        self.instances: list[CountingTask] = []
        self.listener = RecordingListener()
        self._on_run = on_run
        self.group = ThreadTaskGroup("c", self.listener, self._create_task)

    def _create_task(self, config: Mapping[str, str]) -> CountingTask:
        if config.get("fails"):
            raise ValueError("invalid task config")
        self.instances.append(CountingTask(config, self._on_run))
        return self.instances[-1]

    def wait(self, word: str, task: int = 0) -> None:
        wait_until(
            lambda: self.listener.last_report(task) == word, f"{word}, not {self.listener.reports}"
        )


def _plan(*tasks: Mapping[str, str]) -> TaskPlan:
    return plan_of_all_tasks({}, tasks, "c")


def test_a_task_runs_pauses_resumes_and_stops() -> None:
    harness = TaskGroupHarness()
    harness.group.start(_plan({}), paused=False)
    harness.wait("running")
    harness.group.pause()
    harness.wait("paused")
    run_count = harness.instances[0].run_count
    harness.group.resume()
    harness.wait("running")
    assert harness.instances[0].run_count > run_count
    wait_until(lambda: harness.listener.topics == {"topic"}, "its topics to be reported")
    harness.group.stop(50)
    assert harness.listener.last_report() == "stopped"
    assert harness.instances[0].is_closed


def test_a_task_that_starts_paused_does_nothing() -> None:
    harness = TaskGroupHarness()
    harness.group.start(_plan({}), paused=True)
    harness.wait("paused")
    assert harness.instances[0].run_count == 0
    harness.group.stop(50)


def test_a_cluster_error_is_the_problem_of_a_running_task_until_it_is_solved() -> None:
    def on_run(run_number: int) -> None:
        if run_number == 1:
            raise ClusterUnavailable("B", "connection refused")

    harness = TaskGroupHarness(on_run)
    harness.group.start(_plan({}), paused=False)
    harness.wait("running")
    assert harness.listener.reports[0] == ["running: B: connection refused", "running"]
    harness.group.stop(50)


def test_any_other_error_fails_the_task_and_no_other() -> None:
    harness = TaskGroupHarness()
    harness.group.start(_plan({"fails": "yes"}, {}), paused=False)
    harness.wait("failed", 0)
    harness.wait("running", 1)
    assert str(harness.listener.failures[0]) == "invalid task config"
    harness.group.restart(_plan({}, {}), [0])
    harness.wait("running", 0)
    harness.group.stop(50)


def test_reassigning_restarts_only_tasks_that_reject_their_new_config() -> None:
    harness = TaskGroupHarness()
    harness.group.start(_plan({"n": "0"}, {"n": "1"}, {"n": "2"}), paused=False)
    for task in range(3):
        harness.wait("running", task)
    instances = {instance.config["n"]: instance for instance in harness.instances}
    harness.group.reassign(_plan({"n": "0", "problem": "slow"}, {"n": "1", "restart": "yes"}))
    harness.wait("running: slow", 0)
    harness.wait("stopped", 2)
    wait_until(lambda: instances["1"].is_closed, "the earlier instance to end")
    wait_until(lambda: harness.listener.reports[1].count("running") == 2, "it to run again")
    assert not instances["0"].is_closed
    assert len(harness.instances) == 4
    harness.group.stop(50)
    assert all(instance.is_closed for instance in harness.instances)


def test_a_step_that_waits_for_a_cluster_reports_why_and_a_stop_cancels_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(thread_tasks, "SLOW_STEP_S", -1.0)
    monkeypatch.setattr(thread_tasks, "STEP_END_TIMEOUT_S", 0.01)
    refused = ClusterUnavailable("A", "connection refused")
    harness = TaskGroupHarness(lambda _: harness.instances[0].client.call(refused))
    harness.group.start(_plan({}), paused=False)
    harness.wait("running: A: connection refused")
    harness.group.stop(50)
    assert harness.instances[0].is_closed
    assert harness.listener.reports[0] == ["running: A: connection refused", "stopped"]

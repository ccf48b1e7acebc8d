"""The tasks of a source connector: herder requests reach the driver, and statuses come back."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from sparkmirror.backoff import Backoff
from sparkmirror.connect.task_group import TaskPlan
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.snapshot import CopySnapshot, PartitionView
from sparkmirror.engine.noop_conductor import job_without_partitions
from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.engine.supervisor.driver_supervisor import DriverSupervisor
from sparkmirror.worker.connector_progress import WorkerMonitor
from sparkmirror.worker.group.membership_expiry import Membership
from sparkmirror.worker.group.membership_renewals import MembershipRenewals
from sparkmirror.worker.spark.spark_applications import SparkApplications
from sparkmirror.worker.spark.spark_settings import SparkSettings
from sparkmirror.worker.spark.spark_task_group import (
    SparkTaskGroup,
    problems_by_task,
    topics_by_task,
)
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[4]


class RecordingListener:
    """A TaskListener that records all calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []
        self.problems: dict[int, str] = {}
        self.all_problems: list[str] = []
        self.errors: dict[int, BaseException] = {}

    def on_running(self, task: int, problem: str = "") -> None:
        self.calls.append(("running", task))
        self.problems[task] = problem
        self.all_problems.append(problem)

    def on_paused(self, task: int) -> None:
        self.calls.append(("paused", task))

    def on_failed(self, task: int, error: BaseException) -> None:
        self.calls.append(("failed", task))
        self.errors[task] = error

    def on_stopped(self, task: int) -> None:
        self.calls.append(("stopped", task))

    def on_topics(self, task: int, topics: Collection[str]) -> None:
        self.calls.append(("topics", task))

    def last(self, task: int) -> str:
        """The last reported state of a task."""
        return next((state for state, number in reversed(self.calls) if number == task), "")

    def are(self, state: str, *tasks: int) -> Callable[[], bool]:
        """Whether this is the last reported state of these tasks."""
        return lambda: all(self.last(task) == state for task in tasks)


def plan(
    tasks: int,
    *,
    user: str = "s",
    generation: int = 0,
    remotes: Mapping[str, str] | None = None,
    policy: Mapping[str, str] | None = None,
) -> TaskPlan:
    """A plan; `remotes` and `policy` become the remote topics and policy topics of its job."""
    names = {"remotes": json.dumps(remotes or {}), "policy": json.dumps(policy or {})}
    return TaskPlan(
        connector="well",
        config={"user": user, **names},
        tasks={n: {"number": str(n), "user": user} for n in range(tasks)},
        task_count=tasks,
        generation=generation,
    )


@contextmanager
def group(
    directory: Path, monkeypatch: pytest.MonkeyPatch, script: str = "well"
) -> Iterator[tuple[SparkTaskGroup, RecordingListener]]:
    """Tasks whose driver follows a script (see tests.support.spark.fake_driver)."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    settings = SparkSettings(log_directory=directory, receipts=str(directory / "receipts"))

    def to_job(task_plan: TaskPlan) -> CopyJob:
        job = job_without_partitions(len(task_plan.tasks))
        client = {"bootstrap.servers": "nowhere:1", "sasl.jaas.config": task_plan.config["user"]}
        return replace(
            job,
            connector=script,
            settings=replace(job.settings, source=client),
            remote_topics=json.loads(task_plan.config["remotes"]),
            policy_topics=json.loads(task_plan.config["policy"]),
        )

    def create(spec: DriverSpec) -> DriverSupervisor:
        return DriverSupervisor(
            spec,
            module="tests.support.spark.fake_driver",
            backoff=Backoff(initial_s=1.0),  # long enough to see the status in between
        )

    listener = RecordingListener()
    monitor = WorkerMonitor().for_flow()
    applications = SparkApplications(settings, create=create)
    tasks = SparkTaskGroup(
        *("well", listener, to_job, applications.start_job, monitor),
        renewals=MembershipRenewals(lambda: Membership(inf, is_alone=True)),
    )
    try:
        yield tasks, listener
    finally:
        tasks.stop(50)
        applications.close()


def starts(directory: Path) -> int:
    path = directory / "starts"
    return len(path.read_text().split()) if path.exists() else 0


def test_tasks_run_pause_resume_and_stop_in_one_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with group(tmp_path, monkeypatch) as (tasks, listener):
        tasks.start(plan(2), paused=False)
        wait_until(listener.are("running", 0, 1), "both to run")
        tasks.pause()
        wait_until(listener.are("paused", 0, 1), "both to pause")
        tasks.resume()
        wait_until(listener.are("running", 0, 1), "both to resume")
    assert listener.are("stopped", 0, 1)()
    assert starts(tmp_path) == 1


def test_another_plan_needs_no_new_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with group(tmp_path, monkeypatch) as (tasks, listener):
        tasks.start(plan(2), paused=False)
        wait_until(listener.are("running", 0, 1), "both to run")
        tasks.reassign(plan(3, generation=1))
        wait_until(listener.are("running", 0, 1, 2), "three to run")
        tasks.reassign(plan(1, generation=2))
        assert listener.are("stopped", 1, 2)()
        assert starts(tmp_path) == 1


def test_another_secret_needs_a_new_job_in_the_same_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with group(tmp_path, monkeypatch) as (tasks, listener):
        tasks.start(plan(1), paused=False)
        wait_until(listener.are("running", 0), "it to run")
        first = tasks.running
        listener.calls.clear()
        tasks.reassign(plan(1, user="another", generation=1))
        assert tasks.running is not first
        wait_until(listener.are("running", 0), "it to run again")
        assert "failed" not in [state for state, _ in listener.calls]
    assert starts(tmp_path) == 1


def test_another_name_of_a_remote_topic_needs_a_new_job_and_another_topic_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with group(tmp_path, monkeypatch) as (tasks, _):
        tasks.start(plan(1, remotes={"t": "old-t"}), paused=False)
        first = tasks.running
        tasks.reassign(plan(1, remotes={"t": "old-t", "u": "new-u"}))
        tasks.reassign(plan(1, remotes={"u": "new-u"}))
        assert tasks.running is first, "topics that come and go leave the others alone"
        tasks.reassign(plan(1, remotes={"t": "new-t", "u": "new-u"}))
        assert tasks.running is not first, "the job may still have the old name of t"
        second = tasks.running
        tasks.restart(plan(1, remotes={"t": "new-t"}, policy={"t": "A.t"}), [0])
        assert tasks.running is not second, "transformations see the name of the policy"
    assert starts(tmp_path) == 1


@pytest.mark.parametrize(
    "changed",
    [plan(1, remotes={"t": "new-t"}), plan(1, remotes={"t": "old-t"}, user="another")],
    ids=["name", "secret"],
)
def test_what_changes_during_a_pause_needs_a_new_job_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: TaskPlan
) -> None:
    with group(tmp_path, monkeypatch) as (tasks, listener):
        tasks.start(plan(1, remotes={"t": "old-t"}), paused=False)
        first = tasks.running
        tasks.pause()
        tasks.reassign(changed)
        tasks.resume()
        assert tasks.running is not first
        wait_until(listener.are("running", 0), "it to run")


def test_paused_tasks_start_no_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with group(tmp_path, monkeypatch) as (tasks, listener):
        tasks.start(plan(2), paused=True)
        assert listener.are("paused", 0, 1)()
        tasks.reassign(plan(3))
        assert listener.are("paused", 0, 1, 2)()
        assert tasks.status is None
        assert starts(tmp_path) == 0


def test_a_driver_that_gives_up_fails_every_task_and_a_restart_tries_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with group(tmp_path, monkeypatch, "refuses") as (tasks, listener):
        tasks.start(plan(2), paused=False)
        wait_until(listener.are("failed", 0, 1), "both to fail")
        assert str(listener.errors[0]) == "the job is invalid"
        tasks.restart(plan(2), [0])
        wait_until(lambda: starts(tmp_path) == 2, "another try")
        wait_until(lambda: listener.calls.count(("failed", 1)) == 2, "it to fail again")


def test_a_job_that_fails_concerns_its_connector_only_and_a_restart_starts_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with group(tmp_path, monkeypatch, "invalid") as (tasks, listener):
        tasks.start(plan(2), paused=False)
        wait_until(listener.are("failed", 0, 1), "both to fail")
        assert str(listener.errors[0]) == "the job is invalid"
        tasks.restart(plan(2), [0])
        wait_until(lambda: listener.calls.count(("failed", 1)) == 2, "it to fail again")
    assert starts(tmp_path) == 1


def test_a_restart_restarts_tasks_and_with_changed_secrets_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with group(tmp_path, monkeypatch) as (tasks, listener):
        tasks.start(plan(1), paused=False)
        wait_until(listener.are("running", 0), "it to run")
        first = tasks.running
        tasks.restart(plan(1), [0])
        wait_until(lambda: "restart-tasks" in listener.all_problems, "the command")
        assert tasks.running is first
        tasks.restart(plan(1, user="changed"), [0])
        assert tasks.running is not first
    assert starts(tmp_path) == 1


def test_tasks_stay_running_when_their_driver_dies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with group(tmp_path, monkeypatch) as (tasks, listener):
        tasks.start(plan(1), paused=False)
        wait_until(listener.are("running", 0), "it to run")
        os.kill(int((tmp_path / "starts").read_text()), 9)
        wait_until(lambda: "ended with code -9" in str(listener.all_problems), "the reason")
        wait_until(lambda: starts(tmp_path) == 2 and listener.problems[0] == "", "no problem")
        assert "failed" not in [state for state, _ in listener.calls]


def view(task: int, reason: str = "", records: int = 0) -> PartitionView:
    return PartitionView(
        remote=f"A.{task}", task=task, state="held", reason=reason, records=records
    )


def test_problems_have_one_text_per_cause() -> None:
    held = {f"many-{n}": view(1, "why") for n in range(7)} | {"one-0": view(1, "another")}
    snapshot = CopySnapshot(partitions={"well-0": view(0), "bad-0": view(2, "because"), **held})
    assert problems_by_task(snapshot) == {
        1: "many-0 and 6 more partitions: why; one-0: another",
        2: "bad-0: because",
    }
    assert problems_by_task(snapshot, except_for="why; and more")[1] == "one-0: another"


def test_topics_are_reported_once_a_record_was_copied() -> None:
    snapshot = CopySnapshot(partitions={"a-0": view(0), "a-1": view(1, records=3)})
    assert topics_by_task(snapshot) == {1: {"A.1"}}

"""The tasks of a source connector: what the herder asks reaches the driver, and the way back."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from sparkmirror.backoff import Backoff
from sparkmirror.connect.task_group import TaskPlan
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.snapshot import CopySnapshot, PartitionView
from sparkmirror.engine.noop_conductor import job_without_partitions
from sparkmirror.engine.supervisor.driver_supervisor import DriverSupervisor
from sparkmirror.worker.spark_settings import SparkSettings
from sparkmirror.worker.spark_task_group import SparkTaskGroup, remarks_by_task, topics_by_task
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[3]


class Heard:
    """What was said of each task, the latest last."""

    def __init__(self) -> None:
        self.said: list[tuple[str, int]] = []
        self.remarks: dict[int, str] = {}
        self.all_remarks: list[str] = []
        self.errors: dict[int, BaseException] = {}

    def on_running(self, task: int, remark: str = "") -> None:
        self.said.append(("running", task))
        self.remarks[task] = remark
        self.all_remarks.append(remark)

    def on_paused(self, task: int) -> None:
        self.said.append(("paused", task))

    def on_failed(self, task: int, error: BaseException) -> None:
        self.said.append(("failed", task))
        self.errors[task] = error

    def on_stopped(self, task: int) -> None:
        self.said.append(("stopped", task))

    def on_topics(self, task: int, topics: Collection[str]) -> None:
        self.said.append(("topics", task))

    def last(self, task: int) -> str:
        """What was said of a task last."""
        return next((what for what, whose in reversed(self.said) if whose == task), "")

    def are(self, what: str, *tasks: int) -> Callable[[], bool]:
        """Whether that is the latest word on these tasks."""
        return lambda: all(self.last(task) == what for task in tasks)


def plan(tasks: int, *, user: str = "s", generation: int = 0) -> TaskPlan:
    return TaskPlan(
        connector="well",
        config={"user": user},
        tasks=tuple({"number": str(n), "user": user} for n in range(tasks)),
        generation=generation,
    )


@contextmanager
def group(
    directory: Path, monkeypatch: pytest.MonkeyPatch, script: str = "well"
) -> Iterator[tuple[SparkTaskGroup, Heard]]:
    """Tasks whose driver follows a script (see tests.support.spark.fake_driver)."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    settings = SparkSettings(log_directory=directory, receipts=str(directory / "receipts"))

    def job_of(wanted: TaskPlan) -> CopyJob:
        job = job_without_partitions(len(wanted.tasks))
        client = {"bootstrap.servers": "nowhere:1", "sasl.jaas.config": wanted.config["user"]}
        return replace(job, connector=script, settings=replace(job.settings, source=client))

    def supervise(job: CopyJob) -> DriverSupervisor:
        return DriverSupervisor(
            settings.driver_spec(job),
            module="tests.support.spark.fake_driver",
            backoff=Backoff(initial_s=1.0),  # long enough for what is said meanwhile to be heard
        )

    heard = Heard()
    tasks = SparkTaskGroup("well", heard, job_of, supervise)
    try:
        yield tasks, heard
    finally:
        tasks.stop(50)


def starts(directory: Path) -> int:
    path = directory / "starts"
    return len(path.read_text().split()) if path.exists() else 0


def test_tasks_run_hold_still_go_on_and_end_in_one_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with group(tmp_path, monkeypatch) as (tasks, heard):
        tasks.start(plan(2), paused=False)
        wait_until(heard.are("running", 0, 1), "both to run")
        tasks.pause()
        wait_until(heard.are("paused", 0, 1), "both to hold still")
        tasks.resume()
        wait_until(heard.are("running", 0, 1), "both to go on")
    assert heard.are("stopped", 0, 1)()
    assert starts(tmp_path) == 1


def test_another_plan_needs_no_other_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with group(tmp_path, monkeypatch) as (tasks, heard):
        tasks.start(plan(2), paused=False)
        wait_until(heard.are("running", 0, 1), "both to run")
        tasks.reassign(plan(3, generation=1))
        wait_until(heard.are("running", 0, 1, 2), "three to run")
        tasks.reassign(plan(1, generation=2))
        assert heard.are("stopped", 1, 2)()
        assert starts(tmp_path) == 1


def test_another_secret_needs_another_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with group(tmp_path, monkeypatch) as (tasks, heard):
        tasks.start(plan(1), paused=False)
        wait_until(heard.are("running", 0), "it to run")
        tasks.reassign(plan(1, user="another", generation=1))
        wait_until(lambda: starts(tmp_path) == 2, "the next driver")
        wait_until(heard.are("running", 0), "it to run again")
        assert "failed" not in [what for what, _ in heard.said]


def test_paused_tasks_start_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with group(tmp_path, monkeypatch) as (tasks, heard):
        tasks.start(plan(2), paused=True)
        assert heard.are("paused", 0, 1)()
        tasks.reassign(plan(3))
        assert heard.are("paused", 0, 1, 2)()
        assert tasks.status is None
        assert starts(tmp_path) == 0


def test_a_driver_that_cannot_work_fails_every_task_and_a_restart_tries_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with group(tmp_path, monkeypatch, "refuses") as (tasks, heard):
        tasks.start(plan(2), paused=False)
        wait_until(heard.are("failed", 0, 1), "both to fail")
        assert str(heard.errors[0]) == "the job is invalid"
        tasks.restart({0: {"number": "0"}})
        wait_until(lambda: starts(tmp_path) == 2, "another try")
        wait_until(lambda: heard.said.count(("failed", 1)) == 2, "it to fail again")


def test_a_driver_that_dies_is_no_failure_of_its_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with group(tmp_path, monkeypatch) as (tasks, heard):
        tasks.start(plan(1), paused=False)
        wait_until(heard.are("running", 0), "it to run")
        os.kill(int((tmp_path / "starts").read_text()), 9)
        wait_until(lambda: "ended with code -9" in str(heard.all_remarks), "the reason to be said")
        wait_until(lambda: starts(tmp_path) == 2 and heard.remarks[0] == "", "it to be well again")
        assert "failed" not in [what for what, _ in heard.said]


def view(task: int, reason: str = "", records: int = 0) -> PartitionView:
    return PartitionView(
        remote=f"A.{task}", task=task, state="held", reason=reason, records=records
    )


def test_what_stops_partitions_is_told_of_their_task_the_first_few_in_full() -> None:
    held = {f"many-{n}": view(1, "why") for n in range(7)}
    snapshot = CopySnapshot(partitions={"well-0": view(0), "bad-0": view(2, "because"), **held})
    remarks = remarks_by_task(snapshot)
    assert remarks[2] == "bad-0: because"
    assert remarks[1].startswith("many-0: why; many-1: why; ")
    assert remarks[1].endswith("; and 2 more partitions")
    assert 0 not in remarks


def test_topics_count_once_something_was_copied() -> None:
    snapshot = CopySnapshot(partitions={"a-0": view(0), "a-1": view(1, records=3)})
    assert topics_by_task(snapshot) == {1: {"A.1"}}

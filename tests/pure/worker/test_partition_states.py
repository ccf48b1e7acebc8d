"""The partitions of a source connector stay visible, and never with figures that may be wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sparkmirror.copy.snapshot import SPARK_STARTS, CopySnapshot, PartitionView
from sparkmirror.engine.noop_conductor import job_without_partitions
from sparkmirror.engine.supervisor.driver_status import SILENT_S, DriverPhase, DriverStatus
from sparkmirror.model import TopicPartition
from sparkmirror.worker.partition_states import (
    NOT_COPIED,
    NOT_REPORTED,
    SILENT,
    SILENT_AFTER_S,
    IdleState,
    PartitionStates,
)

JOB = replace(
    job_without_partitions(2),
    remote_topics={"t": "A.t"},
    tasks={0: (TopicPartition("t", 0),), 1: (TopicPartition("t", 1),)},
)
DOCS = Path(__file__).parents[3] / "docs"
PROBLEM = "the Spark driver ended with code -9; see spark.log"


def view(position: int, end: int, task: int = 0, reason: str = "") -> PartitionView:
    return PartitionView(
        remote="A.t",
        task=task,
        state="leased",
        position=position,
        end=end,
        records=position,
        reason=reason,
    )


def status(
    phase: DriverPhase = DriverPhase.RUNNING, problem: str = "", **partitions: PartitionView
) -> DriverStatus:
    named = {key.replace("_", "-"): one for key, one in partitions.items()}
    return DriverStatus(phase=phase, problem=problem, snapshot=CopySnapshot(partitions=named))


def planned() -> PartitionStates:
    partitions = PartitionStates()
    partitions.on_plan(JOB)
    return partitions


def running() -> PartitionStates:
    partitions = planned()
    partitions.on_status(status(t_0=view(7, 7), t_1=view(5, 9, task=1)), 100.0)
    return partitions


def shown(partitions: PartitionStates, now: float = 100.0) -> dict[str, tuple[object, ...]]:
    return {
        key: (one.state, one.position, one.lag, one.reason)
        for key, one in partitions.views(now).items()
    }


def test_reported_partitions_are_shown_as_the_driver_reports_them() -> None:
    assert shown(running()) == {"t-0": ("leased", 7, 0, ""), "t-1": ("leased", 5, 4, "")}


def test_partitions_are_listed_while_spark_starts_without_a_lag() -> None:
    partitions = planned()
    assert shown(partitions) == dict.fromkeys(("t-0", "t-1"), ("waiting", -1, None, SPARK_STARTS))
    assert [one.remote for one in partitions.views(0.0).values()] == ["A.t", "A.t"]
    assert [one.task for one in partitions.views(0.0).values()] == [0, 1]


def test_lag_stays_unknown_until_a_task_follows_the_log() -> None:
    partitions = planned()
    waiting = replace(view(7, 7), state="waiting")
    partitions.on_status(status(DriverPhase.STARTING, t_0=waiting), 100.0)
    assert shown(partitions)["t-0"] == ("waiting", 7, None, SPARK_STARTS)


def test_starting_driver_that_waits_for_a_cluster_says_so_for_every_partition() -> None:
    partitions = planned()
    partitions.on_status(status(DriverPhase.STARTING, "waiting for cluster A: refused"), 100.0)
    assert shown(partitions)["t-1"] == ("held", -1, None, "waiting for cluster A: refused")


@pytest.mark.parametrize("phase", [DriverPhase.RESTARTING, DriverPhase.FAILED])
def test_figures_of_a_dead_driver_are_not_shown(phase: DriverPhase) -> None:
    partitions = running()
    partitions.on_status(status(phase, PROBLEM, t_0=view(7, 7)), 101.0)
    assert shown(partitions) == {
        "t-0": ("held", 7, None, PROBLEM),
        "t-1": ("held", 5, None, PROBLEM),
    }


def test_figures_of_a_silent_driver_are_not_shown() -> None:
    partitions = running()
    assert shown(partitions, 100 + SILENT_AFTER_S)["t-0"] == ("leased", 7, 0, "")
    assert shown(partitions, 101 + SILENT_AFTER_S)["t-0"] == ("held", 7, None, SILENT)
    partitions.on_status(status(t_0=view(8, 8)), 200.0)
    assert shown(partitions, 200.0)["t-0"] == ("leased", 8, 0, "")


def test_lag_of_a_silent_driver_is_unknown_when_the_pages_say() -> None:
    assert SILENT_S == 5.0
    assert SILENT_AFTER_S <= SILENT_S + 2.0
    promises = {
        "operate.md": f"never older than {SILENT_S:.0f} seconds (and the second or two",
        "rest.md": f"has sent no status for {SILENT_S:.0f} s",
    }
    for page, promise in promises.items():
        assert promise in " ".join((DOCS / page).read_text("utf-8").split())


def test_next_driver_keeps_the_last_position_until_it_knows_its_own() -> None:
    partitions = running()
    waiting = PartitionView(remote="A.t", task=0, state="waiting")
    partitions.on_status(status(t_0=waiting), 101.0)
    assert shown(partitions)["t-0"] == ("waiting", 7, None, NOT_COPIED)
    assert partitions.views(101.0)["t-0"].records == 7


def test_partition_that_changes_its_task_needs_no_reason() -> None:
    partitions = planned()
    partitions.on_status(status(t_0=replace(view(7, 9), state="waiting")), 100.0)
    assert shown(partitions)["t-0"] == ("waiting", 7, 2, "")


def test_paused_connector_keeps_its_partitions_and_their_last_position() -> None:
    partitions = running()
    partitions.on_requested(IdleState.PAUSED)
    partitions.on_status(status(t_0=view(7, 7)), 101.0)
    assert shown(partitions) == {"t-0": ("leased", 7, 0, ""), "t-1": ("paused", 5, None, "")}
    partitions.on_status(status(), 102.0)
    assert shown(partitions) == {
        "t-0": ("paused", 7, None, ""),
        "t-1": ("paused", 5, None, ""),
    }
    partitions.on_requested(None)
    assert shown(partitions)["t-0"] == ("waiting", 7, None, NOT_REPORTED)


def test_paused_partitions_stay_paused_when_the_driver_dies() -> None:
    partitions = running()
    partitions.on_requested(IdleState.PAUSED)
    partitions.on_status(status(DriverPhase.RESTARTING, PROBLEM), 101.0)
    assert shown(partitions)["t-0"] == ("paused", 7, None, "")


def test_worker_that_starts_with_a_paused_connector_lists_its_partitions() -> None:
    partitions = planned()
    partitions.on_requested(IdleState.PAUSED)
    assert shown(partitions) == dict.fromkeys(("t-0", "t-1"), ("paused", -1, None, ""))


def test_stopped_connector_keeps_its_partitions_without_old_figures() -> None:
    partitions = running()
    partitions.on_driver_ended()
    partitions.on_requested(IdleState.STOPPED)
    assert shown(partitions)["t-0"] == ("stopped", 7, None, "")


def test_new_partition_waits_until_the_driver_reports_it_and_an_old_one_goes() -> None:
    partitions = running()
    job = replace(JOB, tasks={0: (TopicPartition("t", 0), TopicPartition("t", 2))})
    partitions.on_plan(job)
    partitions.on_status(status(t_0=view(8, 8)), 101.0)
    assert shown(partitions) == {
        "t-0": ("leased", 8, 0, ""),
        "t-2": ("waiting", -1, None, NOT_REPORTED),
    }


def test_partition_that_waits_for_a_slot_names_the_problem_of_the_driver() -> None:
    partitions = planned()
    problem = "only 1 of 2 tasks have a slot in Spark"
    behind = replace(view(5, 9, task=1, reason=problem), state="waiting")
    never_copied = PartitionView(remote="A.t", task=1, state="waiting", reason=problem)
    for waiting, position, lag in ((behind, 5, 4), (never_copied, 5, None)):
        partitions.on_status(status(problem=problem, t_0=view(7, 7), t_1=waiting), 100.0)
        assert shown(partitions) == {
            "t-0": ("leased", 7, 0, ""),
            "t-1": ("waiting", position, lag, problem),
        }


def test_a_stopped_connector_still_knows_how_many_partitions_its_topics_had() -> None:
    partitions = PartitionStates()
    assert partitions.partition_counts() == {}
    partitions.on_plan(JOB)
    partitions.on_requested(IdleState.STOPPED)
    partitions.on_driver_ended()
    assert partitions.partition_counts() == {"t": 2}


def test_a_worker_with_some_of_the_tasks_does_not_know_how_many_partitions_there_are() -> None:
    partitions = PartitionStates()
    partitions.on_plan(replace(JOB, task_count=JOB.task_count + 1))
    assert partitions.partition_counts() == {}

"""What a worker shows and logs of its source connectors."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from sparkmirror.connect.herder.mirror_monitor_api import MirrorEvent
from sparkmirror.copy.snapshot import CopyEvent, CopySnapshot, PartitionView
from sparkmirror.engine.noop_conductor import job_without_partitions
from sparkmirror.engine.supervisor.driver_status import DriverPhase, DriverStatus
from sparkmirror.mirror.connect_topics.connect_configs import TargetState
from sparkmirror.model import TopicPartition
from sparkmirror.worker.connector_progress import WorkerMonitor
from sparkmirror.worker.source_connector_events import SHOWN_EVENTS

FLOW = "A->B."
NAME = "MirrorSourceConnector"
JOB = replace(
    job_without_partitions(1), remote_topics={"t": "A.t"}, tasks={0: (TopicPartition("t", 0),)}
)
VIEW = PartitionView(remote="A.t", task=0, state="leased", position=7, end=9, records=7)
LOST = CopyEvent(
    at_ms=5,
    kind="retention",
    partition="t-0",
    text="offsets 3 to 6 are lost",
    lost_from=3,
    lost_to=7,
)
TAKEOVER = CopyEvent(at_ms=6, kind="takeover", partition="t-0", text="goes on at offset 7")


def running(monitor: WorkerMonitor, *events: CopyEvent) -> None:
    flow = monitor.for_flow(FLOW)
    flow.on_plan(NAME, JOB)
    flow.on_running(NAME)
    snapshot = CopySnapshot(partitions={"t-0": VIEW}, events=events)
    flow.on_status(NAME, DriverStatus(phase=DriverPhase.RUNNING, snapshot=snapshot))


def states(monitor: WorkerMonitor) -> list[tuple[str, int | None, int | None, int | None]]:
    found = monitor.partitions(FLOW + NAME)
    return [(one.state, one.position, one.end, one.lag) for one in found]


def test_partitions_have_the_name_of_rest_and_unknown_numbers_are_none() -> None:
    monitor = WorkerMonitor()
    monitor.for_flow(FLOW).on_plan(NAME, JOB)
    assert states(monitor) == [("waiting", None, None, None)]
    running(monitor)
    assert states(monitor) == [("leased", 7, 9, 2)]
    assert monitor.partitions("another") == []


def test_stopped_connector_keeps_partitions_and_a_deleted_one_has_nothing() -> None:
    monitor = WorkerMonitor()
    running(monitor, LOST)
    flow = monitor.for_flow(FLOW)
    flow.on_driver_ended(NAME)
    flow.on_tasks_ended(NAME, TargetState.STOPPED)
    assert states(monitor) == [("stopped", 7, None, None)]
    flow.on_tasks_ended(NAME, None)
    assert states(monitor) == []
    assert monitor.events(FLOW + NAME) == []


def test_connector_that_runs_without_tasks_has_no_partitions_and_keeps_its_events() -> None:
    monitor = WorkerMonitor()
    running(monitor, LOST)
    monitor.for_flow(FLOW).on_tasks_ended(NAME, TargetState.STARTED)
    assert states(monitor) == []
    assert len(monitor.events(FLOW + NAME)) == 1


def test_end_of_tasks_of_another_connector_is_ignored() -> None:
    monitor = WorkerMonitor()
    monitor.for_flow(FLOW).on_tasks_ended("MirrorHeartbeatConnector", TargetState.STOPPED)
    assert monitor.partitions(FLOW + "MirrorHeartbeatConnector") == []


def test_each_event_is_logged_once_with_its_connector(caplog: pytest.LogCaptureFixture) -> None:
    monitor = WorkerMonitor()
    with caplog.at_level(logging.WARNING, "sparkmirror.worker.connector_progress"):
        running(monitor, LOST)
        running(monitor, LOST, TAKEOVER)
        running(monitor)
    assert caplog.messages == [
        "Connector A->B.MirrorSourceConnector: t-0: retention: offsets 3 to 6 are lost",
        "Connector A->B.MirrorSourceConnector: t-0: takeover: goes on at offset 7",
    ]
    assert {record.levelno for record in caplog.records} == {logging.WARNING}
    assert monitor.events(FLOW + NAME) == [
        MirrorEvent(
            at_ms=5,
            kind="retention",
            topic="t",
            partition=0,
            text="offsets 3 to 6 are lost",
            lost_from=3,
            lost_to=7,
        ),
        MirrorEvent(at_ms=6, kind="takeover", topic="t", partition=0, text="goes on at offset 7"),
    ]


def test_log_says_when_there_were_more_events_than_are_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    monitor = WorkerMonitor()
    with caplog.at_level(logging.WARNING, "sparkmirror.worker.connector_progress"):
        running(monitor, *(replace(TAKEOVER, at_ms=at) for at in range(SHOWN_EVENTS + 50)))
    assert len(caplog.messages) == SHOWN_EVENTS + 1
    assert "had 250 events at once; its driver's log has all of them" in caplog.messages[-1]
    assert len(monitor.events(FLOW + NAME)) == SHOWN_EVENTS

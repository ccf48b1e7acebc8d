"""Spec, commands and statuses between supervisor and driver: one line of JSON each."""

from __future__ import annotations

import pytest

from sparkmirror.copy.job import CopyJob, DataLossPolicy, StartMode, StartPosition
from sparkmirror.copy.settings import CopySettings
from sparkmirror.copy.snapshot import CopyEvent, CopySnapshot, PartitionView
from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.engine.supervisor.driver_status import DriverPhase, DriverStatus
from sparkmirror.engine.supervisor.driver_stdin_commands import DriverAction, DriverCommand
from sparkmirror.model import TopicPartition

JOB = CopyJob(
    connector="MirrorSourceConnector",
    group_id="A-mm2",
    settings=CopySettings(
        source_alias="A", target_alias="B", source={"sasl.jaas.config": "hidden"}
    ),
    offsets_topic="mm2-offsets.A.internal",
    remote_topics={"orders": "A.orders"},
    tasks={0: (TopicPartition("orders", 0),), 2: (TopicPartition("orders", 1),)},
    task_count=3,
    start=StartPosition(at=StartMode.OFFSETS, offsets={"orders-1": 5}),
    on_loss=DataLossPolicy.SKIP,
)


def test_a_spec_is_one_line() -> None:
    spec = DriverSpec(
        jobs=(JOB, JOB),
        name="sparkmirror group",
        receipts="s3a://bucket/receipts",
        log="/var/log/mirror",
        master="spark://host:7077",
        epoch_s=60,
        conf={"spark.cores.max": "4"},
        log_levels={"sparkmirror.copy": 10},
        ready_tasks=4,
    )
    line = spec.to_line()
    assert line.count(b"\n") == 1
    assert DriverSpec.from_line(line) == spec
    assert (JOB.flow, JOB.name) == ("A->B", f"A->B.{JOB.connector}")


def test_the_repr_of_a_spec_shows_no_secret() -> None:
    assert "hidden" not in repr(DriverSpec(jobs=(JOB,), receipts="r", log="l"))


@pytest.mark.parametrize("receipts", ["hdfs://nn/r", "s3a://b/r", "file:///r"])
def test_a_uri_of_receipts_stays_as_it_is(receipts: str) -> None:
    absolute = DriverSpec(jobs=(JOB,), receipts=receipts, log="l").with_absolute_paths()
    assert absolute.receipts == receipts
    assert absolute.log.startswith("/")


def test_a_path_of_receipts_is_made_absolute() -> None:
    assert DriverSpec(jobs=(JOB,), receipts="r", log="l").with_absolute_paths().receipts[0] == "/"


@pytest.mark.parametrize(
    "command",
    [
        DriverCommand(action=DriverAction.DRAIN),
        DriverCommand(action=DriverAction.SET_RATE, job_name=JOB.name, bytes_per_s=5),
        DriverCommand(action=DriverAction.RESTART_TASKS, job_name=JOB.name, tasks=(0, 2)),
        DriverCommand(action=DriverAction.KEEP_READY, ready_tasks=4),
        DriverCommand(action=DriverAction.START_JOB, job=JOB),
        DriverCommand(action=DriverAction.REPLAN, job=JOB),
        DriverCommand(action=DriverAction.SET_LOG_LEVELS, log_levels={"sparkmirror.copy": 10}),
    ],
    ids=lambda command: str(command.action),
)
def test_a_command_is_one_line(command: DriverCommand) -> None:
    assert DriverCommand.from_line(command.to_line()) == command


def test_a_status_is_one_line() -> None:
    status = DriverStatus(
        phase=DriverPhase.RUNNING,
        job=JOB.name,
        application_id="local-1",
        slots=2,
        tasks=3,
        epoch=7,
        problem="too\nfew",
        snapshot=CopySnapshot(
            partitions={
                "orders-0": PartitionView(remote="A.orders", task=0, state="leased", records=5)
            },
            lanes={"orders": {"plain": 1}},
            events=(CopyEvent(at_ms=1, kind="loss", partition="orders-0", text="gone"),),
        ),
    )
    line = status.to_line()
    assert line.count(b"\n") == 1
    assert DriverStatus.from_line(line) == status
    again = status.to_line(status.snapshot)
    assert b"orders" not in again, "nothing has changed"
    assert DriverStatus.from_line(again, {JOB.name: status.snapshot}) == status


def test_a_status_line_holds_only_changes() -> None:
    first, second = (
        PartitionView(remote="A.t", task=0, state="leased", position=at) for at in (1, 2)
    )
    before = CopySnapshot(partitions={"t-0": first, "t-1": first}, lanes={"t": {"plain": 1}})
    now = CopySnapshot(partitions={"t-0": second, "t-2": first}, lanes={"t": {"plain": 1}})
    line = DriverStatus(phase=DriverPhase.RUNNING, job="j", snapshot=now).to_line(before)
    assert b"lanes" not in line
    assert DriverStatus.from_line(line, {"j": before, "other": now}).snapshot == now

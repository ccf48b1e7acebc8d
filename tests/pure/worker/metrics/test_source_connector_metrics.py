"""The figures of one source connector."""

from __future__ import annotations

from dataclasses import replace

from sparkmirror.copy.snapshot import CopyEvent, CopySnapshot, PartitionView
from sparkmirror.engine.noop_conductor import job_without_partitions
from sparkmirror.engine.supervisor.driver_status import DriverPhase, DriverStatus
from sparkmirror.mirror.connect_topics.connect_configs import TargetState
from sparkmirror.model import TopicPartition
from sparkmirror.worker.connector_progress import WorkerMonitor
from sparkmirror.worker.metrics.metrics_settings import MetricsDetail, MetricsSettings
from tests.support.exposed_series import Series, series, series_of

CONNECTOR = "source->target.MirrorSourceConnector"
JOB = replace(
    job_without_partitions(1),
    connector="MirrorSourceConnector",
    remote_topics={"t": "source.t"},
    tasks={0: (TopicPartition("t", 0), TopicPartition("t", 1))},
)
FLOW = {"source": "source", "target": "target", "connector": f'"{CONNECTOR}"', "topic": "t"}
CLIENT = '"source->target|MirrorSourceConnector-0|replication-consumer"'


class Worker:
    """A monitor with one connector and a clock."""

    def __init__(self, detail: MetricsDetail = MetricsDetail.TOPIC) -> None:
        self.now = 0.0
        self.monitor = WorkerMonitor(lambda: self.now)
        self.flow = self.monitor.for_flow(metrics=MetricsSettings(detail=detail))
        self.flow.on_plan(CONNECTOR, JOB)

    def report(
        self,
        *views: tuple[int, int],
        phase: DriverPhase = DriverPhase.RUNNING,
        events: tuple[CopyEvent, ...] = (),
        lanes: dict[str, dict[str, int]] | None = None,
    ) -> None:
        """One second later the driver reports position and end of each partition."""
        self.now += 1
        partitions = {
            f"t-{number}": PartitionView(
                remote="source.t",
                task=0,
                state="leased",
                position=position,
                end=end,
                copied=max(position, 0),
            )
            for number, (position, end) in enumerate(views)
        }
        snapshot = CopySnapshot(partitions=partitions, events=events, lanes=lanes or {})
        self.flow.on_status(CONNECTOR, DriverStatus(phase=phase, snapshot=snapshot))

    def series(self) -> dict[Series, float]:
        return series_of(self.monitor.figures())


def names(found: dict[Series, float]) -> set[str]:
    return {name for name, _ in found}


def test_a_connector_without_a_driver_has_zeros_and_no_lag() -> None:
    found = Worker().series()
    assert found[series("sparkmirror_lag_unknown_partitions", **FLOW)] == 2
    assert found[series("sparkmirror_partitions", **FLOW, state="waiting")] == 2
    mirror = {"source": "source", "target": "target", "topic": "source.t"}
    for attribute in ("record_count", "record_rate", "byte_count", "byte_rate"):
        name = f"kafka_connect_mirror_mirrorsourceconnector_{attribute}"
        assert found[series(name, **mirror)] == 0
    assert not names(found) & {
        "sparkmirror_lag_records",
        "sparkmirror_eta_seconds",
        "sparkmirror_last_progress_timestamp_seconds",
        "kafka_consumer_fetch_manager_records_lag",
    }


def test_lag_and_eta_of_a_topic() -> None:
    worker = Worker()
    worker.report((0, 1000), (0, 1000))
    worker.report((100, 1000), (200, 1100))
    found = worker.series()
    assert found[series("sparkmirror_lag_records", **FLOW)] == 1800
    assert found[
        series("kafka_consumer_fetch_manager_records_lag", clientid=CLIENT, topic="t")
    ] == (1800)
    # 300 copied and 100 new within a window of one sample of 30 s.
    assert found[series("sparkmirror_eta_seconds", **FLOW)] == 1800 / (200 / 30)
    assert found[series("sparkmirror_lag_unknown_partitions", **FLOW)] == 0


def test_no_eta_while_the_lag_grows_or_is_not_known() -> None:
    worker = Worker()
    worker.report((0, 1000), (0, 1000))
    worker.report((10, 1100), (0, 1000))
    assert "sparkmirror_eta_seconds" not in names(worker.series())
    worker.report((900, 1100), (0, -1))
    found = worker.series()
    assert "sparkmirror_eta_seconds" not in names(found)
    assert found[series("sparkmirror_lag_records", **FLOW)] == 200
    assert found[series("sparkmirror_lag_unknown_partitions", **FLOW)] == 1


def test_without_lag_the_eta_is_zero() -> None:
    worker = Worker()
    worker.report((7, 7), (3, 3))
    assert worker.series()[series("sparkmirror_eta_seconds", **FLOW)] == 0


def test_each_partition_has_its_series_on_request() -> None:
    worker = Worker(MetricsDetail.PARTITION)
    worker.report((0, 10), (0, 10))
    worker.report((4, 10), (0, 10))
    found = worker.series()
    assert found[series("sparkmirror_lag_records", **FLOW, partition="0")] == 6
    assert found[series("sparkmirror_lag_records", **FLOW, partition="1")] == 10
    mirror = {"source": "source", "target": "target", "topic": "source.t", "partition": "0"}
    assert found[series("kafka_connect_mirror_mirrorsourceconnector_record_count", **mirror)] == 4
    progress = "sparkmirror_last_progress_timestamp_seconds"
    assert series(progress, **FLOW, partition="0") in found
    assert series(progress, **FLOW, partition="1") not in found


def test_losses_and_other_events_are_counted_once_by_kind() -> None:
    lost = CopyEvent(
        at_ms=5, kind="retention", partition="t-0", text="lost", lost_from=3, lost_to=7
    )
    takeover = CopyEvent(at_ms=6, kind="takeover", partition="t-1", text="goes on")
    worker = Worker()
    worker.report((7, 9), (0, 0), events=(lost,))
    worker.report((7, 9), (0, 0), events=(lost, takeover))
    found = worker.series()
    assert found[series("sparkmirror_events_total", **FLOW, kind="retention")] == 1
    assert found[series("sparkmirror_events_total", **FLOW, kind="takeover")] == 1
    assert found[series("sparkmirror_lost_records_total", **FLOW, kind="retention")] == 4
    assert series("sparkmirror_lost_records_total", **FLOW, kind="takeover") not in found


def test_lanes_by_reason() -> None:
    worker = Worker()
    worker.report((0, 0), (0, 0), lanes={"t": {"plain": 3, "merged": 1}})
    found = worker.series()
    assert found[series("sparkmirror_lane_batches_total", **FLOW, reason="plain")] == 3
    assert found[series("sparkmirror_lane_batches_total", **FLOW, reason="merged")] == 1


def test_a_driver_that_ends_unexpectedly_is_counted_once() -> None:
    worker = Worker()
    flow = {name: value for name, value in FLOW.items() if name != "topic"}
    phases = (
        DriverPhase.RUNNING,
        DriverPhase.RESTARTING,
        DriverPhase.RESTARTING,
        DriverPhase.STARTING,
        DriverPhase.RUNNING,
        DriverPhase.RESTARTING,
    )
    for phase in phases:
        worker.report((7, 9), (0, 0), phase=phase)
    assert worker.series()[series("sparkmirror_driver_restarts_total", **flow)] == 2


def test_a_silent_driver_has_no_lag() -> None:
    worker = Worker()
    worker.report((7, 9), (0, 5))
    worker.now += 3600
    found = worker.series()
    assert "sparkmirror_lag_records" not in names(found)
    assert found[series("sparkmirror_partitions", **FLOW, state="held")] == 2


def test_a_connector_that_is_deleted_or_runs_elsewhere_has_no_figures() -> None:
    for state in (None, TargetState.STARTED):
        worker = Worker()
        worker.report((7, 9), (0, 5))
        worker.flow.on_tasks_ended(CONNECTOR, state)
        assert worker.series() == {}


def test_a_loss_that_a_later_driver_reports_again_is_counted_once() -> None:
    lost = CopyEvent(
        at_ms=5, kind="retention", partition="t-0", text="lost", lost_from=3, lost_to=7
    )
    worker = Worker()
    worker.report((3, 9), (0, 0), events=(lost,))
    worker.report((3, 9), (0, 0), events=(lost, replace(lost, at_ms=6, lost_to=8)))
    found = worker.series()
    assert found[series("sparkmirror_events_total", **FLOW, kind="retention")] == 2
    assert found[series("sparkmirror_lost_records_total", **FLOW, kind="retention")] == 5


def test_partitions_that_say_why_they_are_not_copied_are_counted() -> None:
    worker = Worker()
    worker.report((0, 9), (0, 9))
    stalled = series("sparkmirror_stalled_partitions", **FLOW)
    assert worker.series()[stalled] == 0
    views = {
        "t-0": PartitionView(remote="source.t", task=0, state="leased", reason="no answer"),
        "t-1": PartitionView(remote="source.t", task=0, state="held", reason="no right"),
    }
    worker.flow.on_status(
        CONNECTOR,
        DriverStatus(phase=DriverPhase.RUNNING, snapshot=CopySnapshot(partitions=views)),
    )
    assert worker.series()[stalled] == 2


def test_a_position_that_was_set_is_no_progress() -> None:
    worker = Worker()
    worker.report((0, 1000), (0, 0))
    view = PartitionView(remote="source.t", task=0, state="leased", position=900, end=1000)
    snapshot = CopySnapshot(partitions={"t-0": view})
    worker.flow.on_status(CONNECTOR, DriverStatus(phase=DriverPhase.RUNNING, snapshot=snapshot))
    found = names(worker.series())
    assert "sparkmirror_last_progress_timestamp_seconds" not in found
    assert "sparkmirror_eta_seconds" not in found


def test_counters_of_a_topic_that_left_the_plan_are_gone() -> None:
    takeover = CopyEvent(at_ms=6, kind="takeover", partition="t-1", text="goes on")
    worker = Worker()
    worker.report((0, 0), (0, 0), events=(takeover,), lanes={"t": {"contiguous": 3}})
    counters = {"sparkmirror_events_total", "sparkmirror_lane_batches_total"}
    assert counters <= names(worker.series())
    other = replace(JOB, remote_topics={"u": "source.u"}, tasks={0: (TopicPartition("u", 0),)})
    worker.flow.on_plan(CONNECTOR, other)
    assert not counters & names(worker.series())

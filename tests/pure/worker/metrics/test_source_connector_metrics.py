"""The figures of one source connector."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

from sparkmirror.copy.control.failure_counts import FailureCounts
from sparkmirror.copy.offset_commits import OffsetCommits
from sparkmirror.copy.record_ages import AgeSummary, RecordAges
from sparkmirror.copy.snapshot import CopyEvent, CopySnapshot, PartitionView
from sparkmirror.engine.noop_conductor import job_without_partitions
from sparkmirror.engine.supervisor.driver_status import DriverPhase, DriverStatus
from sparkmirror.metrics.duplicate_series import merge_figures
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
TASK = {"connector": f'"{CONNECTOR}"', "task": "0"}
MIRROR = {"source": "source", "target": "target", "topic": "source.t"}
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
        **others: Any,
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
        snapshot = CopySnapshot(partitions=partitions, events=events, lanes=lanes or {}, **others)
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


def one_view(worker: Worker, **values: Any) -> None:
    """One second later the driver reports one partition."""
    worker.now += 1
    view = PartitionView(remote="source.t", task=0, state="leased", **values)
    snapshot = CopySnapshot(partitions={"t-0": view})
    worker.flow.on_status(CONNECTOR, DriverStatus(phase=DriverPhase.RUNNING, snapshot=snapshot))


def ages(records: int, total_ms: int, low: int, high: int, last: int) -> RecordAges:
    summary = AgeSummary(records, total_ms, low, high, last)
    return RecordAges(summary, AgeSummary(records, 10 * total_ms, low, high + 1, last + 1))


def test_record_age_and_replication_latency_over_the_window() -> None:
    worker = Worker()
    prefix = "kafka_connect_mirror_mirrorsourceconnector_"

    def latency(attribute: str) -> float:
        return worker.series()[series(prefix + attribute, **MIRROR)]

    assert latency("replication_latency_ms") == 0
    assert math.isnan(latency("replication_latency_ms_max"))
    one_view(worker, ages=ages(2, 30, 10, 20, 15))
    one_view(worker, ages=ages(4, 90, 8, 40, 30))
    assert [latency(f"record_age_ms{end}") for end in ("", "_avg", "_min", "_max")] == [
        30,
        90 / 4,
        8,
        40,
    ]
    assert [latency(f"replication_latency_ms{end}") for end in ("", "_avg", "_max")] == [
        31,
        900 / 4,
        41,
    ]
    one_view(worker, ages=ages(4, 90, 8, 40, 30), end=5)
    assert latency("record_age_ms_avg") == 90 / 4, "no record is new"
    one_view(worker, ages=ages(1, 10, 10, 10, 10))
    assert latency("record_age_ms_avg") == 100 / 5, "another driver begins with its own records"
    worker.now += 120
    assert latency("record_age_ms") == 10
    assert math.isnan(latency("record_age_ms_avg"))


def test_lag_in_bytes_and_seconds() -> None:
    worker = Worker()
    old_ms = round((time.time() - 100) * 1000)
    one_view(worker, position=10, end=30, copied=10, bytes=1000, newest_ms=old_ms)
    found = worker.series()
    assert found[series("sparkmirror_lag_bytes", **FLOW)] == 2000
    assert 99 < found[series("sparkmirror_lag_seconds", **FLOW)] < 110
    one_view(worker, position=30, end=30, copied=30, bytes=3000, newest_ms=old_ms)
    found = worker.series()
    assert found[series("sparkmirror_lag_bytes", **FLOW)] == 0
    assert found[series("sparkmirror_lag_seconds", **FLOW)] == 0


def test_no_lag_in_bytes_before_the_first_record() -> None:
    worker = Worker()
    worker.report((0, 10), (0, 10))
    assert "sparkmirror_lag_bytes" not in names(worker.series())


def test_figures_of_a_task_and_its_clients() -> None:
    worker = Worker()
    one_view(worker, position=10, end=30, copied=10, bytes=1000, active=5, queued_bytes=400)
    found = worker.series()
    producer = f'"connector-producer-{CONNECTOR}-0"'
    assert found[series("kafka_connect_source_task_source_record_write_total", **TASK)] == 10
    assert found[series("kafka_connect_source_task_source_record_active_count", **TASK)] == 5
    assert found[series("kafka_consumer_incoming_byte_total", clientid=CLIENT)] == 1000
    assert found[series("kafka_producer_outgoing_byte_total", clientid=producer)] == 1000
    total = found[series("kafka_producer_buffer_total_bytes", clientid=producer)]
    assert found[series("kafka_producer_buffer_available_bytes", clientid=producer)] == total - 400


def test_a_connector_without_a_driver_has_nothing_in_flight() -> None:
    worker = Worker()
    one_view(worker, position=10, end=30, copied=10, active=5, queued_bytes=400)
    worker.flow.on_driver_ended(CONNECTOR)
    active = "kafka_connect_source_task_source_record_active_count"
    assert worker.series()[series(active, **TASK)] == 0


def test_offset_commits_and_lost_attempts_across_drivers() -> None:
    worker = Worker()
    flow = {name: value for name, value in FLOW.items() if name != "topic"}
    for commits, lost in (
        (OffsetCommits(1, 0, 30, 30), 1),
        (OffsetCommits(3, 0, 90, 50), 2),
        (OffsetCommits(1, 0, 10, 10), 1),
    ):
        worker.report((0, 0), (0, 0), commits=commits, lost_attempts=lost)
    found = worker.series()
    prefix = "kafka_connect_connector_task_offset_commit_"
    assert found[series(f"{prefix}avg_time_ms", **TASK)] == 100 / 4
    assert found[series(f"{prefix}max_time_ms", **TASK)] == 50
    assert found[series("sparkmirror_task_restarts_total", **flow)] == 3


def test_records_that_transforms_drop_or_refuse_are_counted_across_drivers() -> None:
    worker = Worker()
    filtered = series("sparkmirror_filtered_records_total", **FLOW)
    skipped = series("kafka_connect_task_error_total_records_skipped", **TASK)
    polled = series("kafka_connect_source_task_source_record_poll_total", **TASK)
    assert worker.series()[filtered] == worker.series()[skipped] == 0
    for count in (4, 4, 6, 1):
        one_view(worker, filtered=count, skipped=2 * count, end=count)
    found = worker.series()
    assert (found[filtered], found[skipped], found[polled]) == (7, 14, 21)


def test_log_lines_and_dead_letters_of_failed_records_are_counted_across_drivers() -> None:
    worker = Worker()
    names = (
        "kafka_connect_task_error_total_errors_logged",
        "kafka_connect_task_error_deadletterqueue_produce_requests",
        "kafka_connect_task_error_deadletterqueue_produce_failures",
    )
    figures = [series(name, **TASK) for name in names]
    assert [worker.series()[one] for one in figures] == [0, 0, 0]
    for logged, letters, requests, failures in ((1, 2, 4, 2), (2, 4, 6, 2), (1, 1, 1, 0)):
        counts = FailureCounts(logged, letters, requests, failures)
        one_view(worker, skipped=requests, failures=counts, end=requests)
    assert [worker.series()[one] for one in figures] == [3, 7, 2]


def test_duplicates_that_were_not_sent_are_counted_across_drivers() -> None:
    worker = Worker()
    suppressed = series("sparkmirror_duplicates_suppressed_total", **FLOW)
    assert worker.series()[suppressed] == 0
    for count in (4, 4, 6, 1):
        one_view(worker, suppressed=count, end=count)
    assert worker.series()[suppressed] == 7


def test_a_record_that_stops_a_partition_is_a_failure_of_its_task() -> None:
    refused = CopyEvent(at_ms=6, kind="refused", partition="t-1", text="too large")
    worker = Worker()
    worker.report((0, 0), (0, 0), events=(refused, replace(refused, at_ms=7)))
    name = "kafka_connect_task_error_total_record_failures"
    assert worker.series()[series(name, **TASK)] == 2


def test_more_events_than_are_shown_are_all_counted() -> None:
    events = tuple(
        CopyEvent(at_ms=n, kind="takeover", partition="t-1", text="goes on") for n in range(1000)
    )
    worker = Worker()
    worker.report((0, 0), (0, 0), events=events)
    assert worker.series()[series("sparkmirror_events_total", **FLOW, kind="takeover")] == 1000


def test_two_connectors_that_copy_the_same_topics_have_each_series_once() -> None:
    worker = Worker()
    worker.report((10, 10), (0, 0))
    worker.flow.on_plan("other", JOB)
    status = DriverStatus(
        phase=DriverPhase.RUNNING,
        snapshot=CopySnapshot(
            partitions={
                "t-0": PartitionView(
                    remote="source.t", task=0, state="leased", position=5, copied=5
                )
            }
        ),
    )
    worker.flow.on_status("other", status)
    found = series_of(merge_figures(worker.monitor.figures()))
    assert found[series("kafka_connect_mirror_mirrorsourceconnector_record_count", **MIRROR)] == 15

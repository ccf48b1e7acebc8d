"""`status` and `groups explain` against a real REST server and a herder in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import click.testing
import pytest

from sparkmirror.cli.groups_explain import groups
from sparkmirror.cli.status import status
from sparkmirror.cli.worker_live_view import BAR_WIDTH, WorkerPoller, summary_line
from sparkmirror.cli.worker_rest_client import WorkerRestClient
from sparkmirror.connect.connectors.checkpoint.group_report import GroupPartitionReport
from sparkmirror.connect.herder.herder import WorkerStatus
from sparkmirror.connect.herder.multi_flow_herder import MultiFlowHerder, flow_connector_name
from sparkmirror.copy.control.failure_counts import FailureCounts
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.snapshot import CopyEvent, CopySnapshot, PartitionView
from sparkmirror.engine.noop_conductor import job_without_partitions
from sparkmirror.engine.supervisor.driver_status import DriverPhase, DriverStatus
from sparkmirror.errors import RequestFailed
from sparkmirror.model import SourceAndTarget, TopicPartition
from sparkmirror.rest.http.listener import RestListener
from sparkmirror.rest.server import RestServer
from sparkmirror.rest.server_options import RestOptions
from sparkmirror.worker.connector_progress import FlowMonitor, WorkerMonitor
from tests.support.connect.in_memory_herder import SOURCE_CONFIG, HerderHarness, running_herder
from tests.support.rest.rest_client import server_that_answers

FLOW = SourceAndTarget("A", "B")
NAME = "MirrorSourceConnector"
REFUSED = "source A: PLAINTEXT 127.0.0.1:9092: connection refused; check whether the broker runs"


def view(position: int, end: int, reason: str = "") -> PartitionView:
    return PartitionView(
        remote="A.orders",
        task=0,
        state="leased",
        position=position,
        end=end,
        records=position,
        bytes=10 * position,
        reason=reason,
    )


def job(*partitions: int) -> CopyJob:
    planned = tuple(TopicPartition("orders", number) for number in partitions)
    return replace(
        job_without_partitions(1), remote_topics={"orders": "A.orders"}, tasks={0: planned}
    )


class AdjustableHerder(MultiFlowHerder):
    """The herder of one flow. A test sets its health and adds connectors without a status."""

    reported_health: WorkerStatus | None = None
    further_names: tuple[str, ...] = ()

    def health(self) -> WorkerStatus:
        return self.reported_health or super().health()

    def connectors(self) -> Sequence[str]:
        return [*super().connectors(), *self.further_names]


@dataclass
class Node:
    """A node of one flow with its REST server."""

    url: str
    harness: HerderHarness
    herder: AdjustableHerder
    monitor: FlowMonitor

    def report(self, *views: PartitionView, events: tuple[CopyEvent, ...] = ()) -> None:
        """Report as a running driver does: one view per partition of the topic orders."""
        partitions = {f"orders-{number}": one for number, one in enumerate(views)}
        snapshot = CopySnapshot(partitions=partitions, events=events)
        self.monitor.on_status(NAME, DriverStatus(phase=DriverPhase.RUNNING, snapshot=snapshot))

    def status(self) -> tuple[str, int]:
        """The output and the exit code of `sparkmirror status`."""
        run = click.testing.CliRunner(env={"COLUMNS": "160"})
        result = run.invoke(status, ["--url", self.url], standalone_mode=False)
        assert result.exception is None, result.exception
        return result.output, result.return_value


@contextmanager
def node() -> Iterator[Node]:
    """A running node with one source connector of two tasks."""
    monitor = WorkerMonitor()
    with running_herder() as harness:
        harness.herder.put_connector_config(NAME, {**SOURCE_CONFIG, "name": NAME})
        harness.wait_for_states(NAME, "RUNNING", "RUNNING", "RUNNING")
        herder = AdjustableHerder({FLOW: harness.herder}, "mm2.properties")
        listeners = [RestListener.parse("http://127.0.0.1:0")]
        server = RestServer(herder, listeners, RestOptions(), monitor)
        server.start()
        try:
            flow = monitor.for_flow(flow_connector_name(FLOW, ""))
            yield Node(server.address, harness, herder, flow)
        finally:
            server.stop(1)


def test_rate_is_measured_between_polls_and_lag_is_end_minus_position() -> None:
    with node() as mirror:
        poller = WorkerPoller(WorkerRestClient(mirror.url))
        mirror.report(view(100, 1000))
        poller.poll(10.0)
        mirror.report(view(300, 1000))
        seen = poller.poll(12.0)
        (topic,) = seen.topics
        assert (topic.topic, topic.remote_topic, topic.records, topic.lag) == (
            *("orders", "A.orders"),
            *(300, 700),
        )
        assert topic.records_per_s == 100
        assert topic.bytes_per_s == 1000
        assert topic.eta_s == 7
        assert topic.fraction == 0.3
        assert seen.is_healthy
        assert summary_line(seen).startswith(
            "1 of 1 connector running  300 records mirrored  100/s"
        )


def test_caught_up_mirror_is_done_and_ends_with_0() -> None:
    with node() as mirror:
        mirror.report(view(9, 9), view(9, 9))
        output, code = mirror.status()
        assert "done" in output
        assert code == 0


def test_failed_records_and_their_dead_letters_are_counted_and_are_no_problem() -> None:
    with node() as mirror:
        letters = FailureCounts(dead_letters=2)
        failed = replace(view(9, 9), skipped=3, failures=letters)
        mirror.report(failed, view(9, 9))
        output, code = mirror.status()
        line = "orders: 3 records failed in transforms and not copied, 2 dead letters written"
        assert line in output.splitlines()
        assert code == 0


def test_a_connector_with_transformations_says_how_far_records_are_opened() -> None:
    chain = {
        "transforms": "mask",
        "transforms.mask.type": "org.apache.kafka.connect.transforms.MaskField$Value",
        "transforms.mask.fields": "ssn",
    }
    with node() as mirror:
        assert "needs values" not in mirror.status()[0]
        mirror.harness.herder.put_connector_config(NAME, {**SOURCE_CONFIG, "name": NAME, **chain})
        assert "records: mask needs values" in mirror.status()[0]


@pytest.mark.parametrize("unknown", [view(9, -1), view(-1, -1), view(9, 3)])
def test_unknown_lag_is_never_done_and_ends_with_2(unknown: PartitionView) -> None:
    with node() as mirror:
        mirror.report(view(9, 9), unknown)
        output, code = mirror.status()
        (row,) = [line for line in output.splitlines() if "A.orders" in line]
        assert "done" not in output
        assert row.split()[-2:] == ["?", "?"], "lag and ETA"
        assert "━" not in row, "no bar"
        assert code == 2


@pytest.mark.parametrize(
    ("reported", "last_columns"),
    [
        ((view(9, 9), view(9, 9, REFUSED)), ["0", "stuck"]),
        ((view(9, 9), view(9, 12, REFUSED)), ["3", "stuck"]),
        ((view(9, 9), replace(view(9, 9, REFUSED), state="waiting")), ["0", "waiting"]),
    ],
    ids=["copied", "behind", "waiting"],
)
def test_stuck_topic_has_no_full_bar_is_never_done_and_ends_with_2(
    reported: tuple[PartitionView, ...], last_columns: list[str]
) -> None:
    with node() as mirror:
        mirror.report(*reported)
        output, code = mirror.status()
        (row,) = [line for line in output.splitlines() if "A.orders" in line]
        assert row.split()[-2:] == last_columns, "lag and ETA"
        assert row.count("━") < BAR_WIDTH
        assert ("━" in row) == (last_columns[0] != "0")
        assert "done" not in output
        assert code == 2


def test_starting_spark_is_shown_and_ends_with_2() -> None:
    with node() as mirror:
        mirror.monitor.on_plan(NAME, job(0, 1, 2))
        output, code = mirror.status()
        (row,) = [line for line in output.splitlines() if "A.orders" in line]
        assert row.split()[-2:] == ["?", "waiting"], "lag and ETA"
        assert "orders-0 and 2 more partitions: the Spark driver is starting" in output
        assert "done" not in output
        assert code == 2


def test_paused_connector_keeps_its_topics_and_ends_with_2() -> None:
    with node() as mirror:
        mirror.monitor.on_plan(NAME, job(0))
        mirror.report(view(9, 9))
        mirror.herder.pause_connector(NAME)
        mirror.harness.wait_for_states(NAME, "PAUSED", "PAUSED", "PAUSED")
        mirror.monitor.on_paused(NAME)
        mirror.report()
        output, code = mirror.status()
        (row,) = [line for line in output.splitlines() if "A.orders" in line]
        assert row.split()[-2:] == ["?", "paused"]
        assert "PAUSED" in output
        assert code == 2


def test_each_cause_is_one_line_with_a_count() -> None:
    with node() as mirror:
        mirror.report(*(view(5, 9, REFUSED) for _ in range(80)))
        output, code = mirror.status()
        assert output.count("connection refused") == 1
        assert f"orders-0 and 79 more partitions: {REFUSED}" in output.splitlines()
        assert code == 2


@pytest.mark.parametrize("health", ["starting", "unhealthy"])
def test_worker_that_is_not_healthy_is_shown_with_its_message(health: str) -> None:
    with node() as mirror:
        mirror.report(view(9, 9))
        message = "waiting for cluster B: connection refused"
        mirror.herder.reported_health = WorkerStatus(status=health, message=message)
        output, code = mirror.status()
        assert f"the worker is {health}: {message}" in output
        assert "A->B.MirrorSourceConnector" in output
        assert code == 2


def test_connector_without_a_status_yet_is_unassigned_and_ends_with_2() -> None:
    with node() as mirror:
        mirror.report(view(9, 9))
        mirror.herder.further_names = ("A->B.MirrorHeartbeatConnector",)
        output, code = mirror.status()
        assert "A->B.MirrorHeartbeatConnector  UNASSIGNED" in output
        assert code == 2


def test_latest_five_events_are_shown_with_their_time() -> None:
    with node() as mirror:
        events = tuple(
            CopyEvent(at_ms=number, kind="takeover", partition="orders-0", text=f"number {number}")
            for number in range(7)
        )
        mirror.report(view(9, 9), events=events)
        output, code = mirror.status()
        shown = [line for line in output.splitlines() if "takeover" in line]
        assert [line.partition("orders-0: ")[2] for line in shown] == [
            f"takeover: number {number}" for number in range(2, 7)
        ]
        assert shown[0].startswith(("1970-01-01", "1969-12-31"))
        assert code == 0, "an event is no problem by itself"


def test_worker_that_refuses_the_request_ends_with_2() -> None:
    with node() as mirror:
        run = click.testing.CliRunner()
        result = run.invoke(status, ["--url", f"{mirror.url}/no"], standalone_mode=False)
        assert "answered 404" in result.output
        assert result.return_value == 2


def test_help_lists_the_exit_codes() -> None:
    shown = click.testing.CliRunner().invoke(status, ["--help"]).output
    for line in ("0  the worker is healthy", "2  something is not", "1  no worker answers"):
        assert line in shown


def test_groups_explain_shows_offsets_of_a_group_and_exits_2_for_an_unknown_group() -> None:
    with node() as mirror:
        partition = TopicPartition("orders", 0)
        mirror.monitor.group_reports.update(
            NAME,
            "billing",
            [
                GroupPartitionReport(
                    group="billing",
                    partition=partition,
                    remote=TopicPartition("A.orders", 0),
                    upstream=7,
                    downstream=9,
                    checkpoint="written",
                    translated="exactly",
                )
            ],
        )
        run = click.testing.CliRunner()
        url = mirror.url
        shown = run.invoke(groups, ["explain", "billing", "--url", url], standalone_mode=False)
        for word in ("billing", "orders-0", "A.orders-0", "7", "9", "exactly; written"):
            assert word in shown.output
        unknown = run.invoke(groups, ["explain", "unknown", "--url", url], standalone_mode=False)
        assert "No checkpoint connector follows group unknown yet" in unknown.output
        assert f"{NAME}:" not in unknown.output
        assert unknown.return_value == 2
        mirror.monitor.group_reports.set_exclusion_reason(NAME, "{} is excluded".format)
        excluded = run.invoke(groups, ["explain", "a/b c", "--url", url], standalone_mode=False)
        assert f"{NAME}: a/b c is excluded" in excluded.output


def test_error_names_the_url_of_an_unreachable_worker() -> None:
    with pytest.raises(RequestFailed, match="no worker answers at http://127.0.0.1:1"):
        WorkerRestClient("127.0.0.1:1").connectors()


def test_a_worker_that_breaks_off_is_named_with_where_to_look() -> None:
    with (
        server_that_answers(b"") as address,
        pytest.raises(RequestFailed, match=f"did not answer GET .*; look at {address}/health"),
    ):
        WorkerRestClient(address).connectors()


def test_an_answer_of_another_server_is_no_answer_of_a_worker() -> None:
    page = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>"
    with (
        server_that_answers(page) as address,
        pytest.raises(RequestFailed, match=f"no worker answers at {address}: Expecting value"),
    ):
        WorkerRestClient(address).connectors()


def test_unknown_connector_is_a_404() -> None:
    with node() as mirror, pytest.raises(RequestFailed, match="answered 404"):
        WorkerRestClient(mirror.url).progress("unknown")

"""`status` and `groups explain` against a real REST server and a herder in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click.testing
import pytest

from sparkmirror.cli.groups import groups
from sparkmirror.cli.live_view import WorkerPoller, summary_line
from sparkmirror.cli.status import status
from sparkmirror.cli.worker_rest_client import WorkerRestClient
from sparkmirror.connect.connectors.checkpoint.group_report import GroupPartitionReport
from sparkmirror.connect.herder.multi_flow_herder import MultiFlowHerder, flow_connector_name
from sparkmirror.copy.snapshot import CopySnapshot, PartitionView
from sparkmirror.errors import RequestFailed
from sparkmirror.model import SourceAndTarget, TopicPartition
from sparkmirror.rest.http.listener import RestListener
from sparkmirror.rest.options import RestOptions
from sparkmirror.rest.server import RestServer
from sparkmirror.worker.monitoring import FlowMonitor, WorkerMonitor
from tests.support.connect.in_memory_herder import SOURCE_CONFIG, running_herder

FLOW = SourceAndTarget("A", "B")
NAME = "MirrorSourceConnector"


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


@contextmanager
def running_rest_server() -> Iterator[tuple[str, FlowMonitor]]:
    """Run the REST server of one flow; yield its address and the monitor of the flow."""
    worker_monitor = WorkerMonitor()
    with running_herder() as harness:
        harness.herder.put_connector_config(NAME, {**SOURCE_CONFIG, "name": NAME})
        harness.wait_for_states(NAME, "RUNNING", "RUNNING", "RUNNING")
        flows = MultiFlowHerder({FLOW: harness.herder}, "mm2.properties")
        server = RestServer(
            flows, [RestListener.parse("http://127.0.0.1:0")], RestOptions(), worker_monitor
        )
        server.start()
        try:
            yield server.address, worker_monitor.for_flow(flow_connector_name(FLOW, ""))
        finally:
            server.stop(1)


def test_rate_is_measured_between_polls_and_lag_is_end_minus_position() -> None:
    with running_rest_server() as (url, monitor):
        poller = WorkerPoller(WorkerRestClient(url))
        monitor.on_snapshot(NAME, CopySnapshot(partitions={"orders-0": view(100, 1000)}))
        poller.poll(10.0)
        monitor.on_snapshot(NAME, CopySnapshot(partitions={"orders-0": view(300, 1000)}))
        answer = poller.poll(12.0)
        (topic,) = answer.topics
        assert (topic.topic, topic.remote_topic, topic.records, topic.lag) == (
            *("orders", "A.orders"),
            *(300, 700),
        )
        assert topic.records_per_s == 100
        assert topic.bytes_per_s == 1000
        assert topic.eta_s == 7
        assert answer.is_healthy
        assert summary_line(answer).startswith(
            "1 of 1 connector running  300 records mirrored  100/s"
        )


def test_status_shows_the_reason_of_a_held_partition() -> None:
    with running_rest_server() as (url, monitor):
        held = {"orders-0": view(5, 9, "the record at offset 5 is too large")}
        monitor.on_snapshot(NAME, CopySnapshot(partitions=held))
        shown = click.testing.CliRunner().invoke(status, ["--url", url], standalone_mode=False)
        assert "A->B.MirrorSourceConnector" in shown.output
        assert "too large" in shown.output


def test_groups_explain_shows_offsets_of_a_group_and_exits_2_for_an_unknown_group() -> None:
    with running_rest_server() as (url, monitor):
        partition = TopicPartition("orders", 0)
        monitor.group_reports.update(
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
        shown = run.invoke(groups, ["explain", "billing", "--url", url], standalone_mode=False)
        for word in ("billing", "orders-0", "A.orders-0", "7", "9", "exactly; written"):
            assert word in shown.output
        unknown = run.invoke(groups, ["explain", "unknown", "--url", url], standalone_mode=False)
        assert "No checkpoint connector follows group unknown yet" in unknown.output
        assert unknown.return_value == 2


def test_error_names_the_url_of_an_unreachable_worker() -> None:
    with pytest.raises(RequestFailed, match="no worker answers at http://127.0.0.1:1"):
        WorkerRestClient("127.0.0.1:1").connectors()


def test_unknown_connector_is_a_404() -> None:
    with running_rest_server() as (url, _), pytest.raises(RequestFailed, match="answered 404"):
        WorkerRestClient(url).partitions("unknown")

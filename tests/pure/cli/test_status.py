"""`status` and `groups explain`, asked of a real REST server over a herder in memory."""

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
def node() -> Iterator[tuple[str, FlowMonitor]]:
    """A node of one flow, with its REST server; what it shows is told through its sight."""
    sight = WorkerMonitor()
    with running_herder() as stage:
        stage.herder.put_connector_config(NAME, {**SOURCE_CONFIG, "name": NAME})
        stage.wait_for_states(NAME, "RUNNING", "RUNNING", "RUNNING")
        flows = MultiFlowHerder({FLOW: stage.herder}, "mm2.properties")
        server = RestServer(flows, [RestListener.parse("http://127.0.0.1:0")], RestOptions(), sight)
        server.start()
        try:
            yield server.address, sight.for_flow(flow_connector_name(FLOW, ""))
        finally:
            server.stop(1)


def test_rates_are_of_the_last_looks_and_lag_is_what_is_left() -> None:
    with node() as (url, sight):
        watcher = WorkerPoller(WorkerRestClient(url))
        sight.on_snapshot(NAME, CopySnapshot(partitions={"orders-0": view(100, 1000)}))
        watcher.poll(10.0)
        sight.on_snapshot(NAME, CopySnapshot(partitions={"orders-0": view(300, 1000)}))
        seen = watcher.poll(12.0)
        (topic,) = seen.topics
        assert (topic.topic, topic.remote_topic, topic.records, topic.lag) == (
            *("orders", "A.orders"),
            *(300, 700),
        )
        assert topic.records_per_s == 100
        assert topic.bytes_per_s == 1000
        assert topic.eta_s == 7
        assert seen.is_healthy
        assert summary_line(seen).startswith(
            "1 of 1 connector running  300 records mirrored  100/s"
        )


def test_what_stops_a_partition_is_shown() -> None:
    with node() as (url, sight):
        held = {"orders-0": view(5, 9, "the record at offset 5 is too large")}
        sight.on_snapshot(NAME, CopySnapshot(partitions=held))
        shown = click.testing.CliRunner().invoke(status, ["--url", url], standalone_mode=False)
        assert "A->B.MirrorSourceConnector" in shown.output
        assert "too large" in shown.output


def test_groups_are_explained_one_by_one() -> None:
    with node() as (url, sight):
        place = TopicPartition("orders", 0)
        sight.group_reports.update(
            NAME,
            "billing",
            [
                GroupPartitionReport(
                    group="billing",
                    partition=place,
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
        nobody = run.invoke(groups, ["explain", "nobody", "--url", url], standalone_mode=False)
        assert "No checkpoint connector follows group nobody yet" in nobody.output
        assert nobody.return_value == 2


def test_a_worker_that_is_not_there_is_named() -> None:
    with pytest.raises(RequestFailed, match="no worker answers at http://127.0.0.1:1"):
        WorkerRestClient("127.0.0.1:1").connectors()


def test_a_connector_that_is_not_there_is_said_so() -> None:
    with node() as (url, _), pytest.raises(RequestFailed, match="answered 404"):
        WorkerRestClient(url).partitions("nobody")

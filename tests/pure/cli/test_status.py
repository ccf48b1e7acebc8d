"""`status` and `groups explain`, asked of a real REST server over a herder in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click.testing
import pytest

from sparkmirror.cli.flow_view import Watcher, line
from sparkmirror.cli.groups import groups
from sparkmirror.cli.mirror_api import MirrorApi
from sparkmirror.cli.status import status
from sparkmirror.connect.connectors.explanations import Explanation
from sparkmirror.connect.flows import FlowsHerding, called
from sparkmirror.copy.snapshot import PartitionView, Snapshot
from sparkmirror.errors import RequestFailed
from sparkmirror.model import SourceAndTarget, TopicPartition
from sparkmirror.rest.listener import Listener
from sparkmirror.rest.options import RestOptions
from sparkmirror.rest.server import RestServer
from sparkmirror.worker.sight import FlowSight, Sight
from tests.support.herders import SOURCE, herding

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
def node() -> Iterator[tuple[str, FlowSight]]:
    """A node of one flow, with its REST server; what it shows is told through its sight."""
    sight = Sight()
    with herding() as stage:
        stage.herder.put_config(NAME, {**SOURCE, "name": NAME})
        stage.reaches(NAME, "RUNNING", "RUNNING", "RUNNING")
        flows = FlowsHerding({FLOW: stage.herder}, "mm2.properties")
        server = RestServer(flows, [Listener.parse("http://127.0.0.1:0")], RestOptions(), sight)
        server.start()
        try:
            yield server.address, sight.of_flow(called(FLOW, ""))
        finally:
            server.stop(1)


def test_rates_are_of_the_last_looks_and_lag_is_what_is_left() -> None:
    with node() as (url, sight):
        watcher = Watcher(MirrorApi(url))
        sight.saw(NAME, Snapshot(partitions={"orders-0": view(100, 1000)}))
        watcher.look(10.0)
        sight.saw(NAME, Snapshot(partitions={"orders-0": view(300, 1000)}))
        seen = watcher.look(12.0)
        (topic,) = seen.topics
        assert (topic.topic, topic.remote, topic.records, topic.lag) == (
            *("orders", "A.orders"),
            *(300, 700),
        )
        assert topic.records_per_s == 100
        assert topic.bytes_per_s == 1000
        assert topic.eta_s == 7
        assert seen.is_well
        assert line(seen).startswith("1 of 1 connector running  300 records mirrored  100/s")


def test_what_stops_a_partition_is_shown() -> None:
    with node() as (url, sight):
        held = {"orders-0": view(5, 9, "the record at offset 5 is too large")}
        sight.saw(NAME, Snapshot(partitions=held))
        shown = click.testing.CliRunner().invoke(status, ["--url", url], standalone_mode=False)
        assert "A->B.MirrorSourceConnector" in shown.output
        assert "too large" in shown.output


def test_groups_are_explained_one_by_one() -> None:
    with node() as (url, sight):
        place = TopicPartition("orders", 0)
        sight.explanations.put(
            NAME,
            "billing",
            [
                Explanation(
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
        MirrorApi("127.0.0.1:1").connectors()


def test_a_connector_that_is_not_there_is_said_so() -> None:
    with node() as (url, _), pytest.raises(RequestFailed, match="answered 404"):
        MirrorApi(url).partitions("nobody")

"""A worker and a node of dedicated mode serve their figures, also before they reach a cluster."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.config.files.properties import load_properties
from sparkmirror.config.files.worker_file import WorkerFile
from sparkmirror.connect.distributed.rebalance_times import RebalanceTimes
from sparkmirror.errors import ConfigError
from sparkmirror.rest.server import RestServer
from sparkmirror.rest.server_options import RestOptions
from sparkmirror.worker import mirror_maker
from sparkmirror.worker.connect_worker import ConnectWorker
from sparkmirror.worker.connector_progress import WorkerMonitor
from sparkmirror.worker.metrics.worker_metrics import MeasuredHerder, WorkerMetrics
from sparkmirror.worker.mirror_maker import MirrorMaker
from sparkmirror.worker.shutdown_signal import ShutdownSignal
from tests.support.connect.in_memory_herder import (
    HEARTBEAT_CONFIG,
    SOURCE_CONFIG,
    named_config,
    running_herder,
)
from tests.support.exposed_series import Series, series
from tests.support.metric_definitions import DEFINITIONS
from tests.support.rest.rest_client import request_once, running_rest_server

LISTENERS = "listeners=http://127.0.0.1:0\nsparkmirror.metrics.listener=http://127.0.0.1:0\n"
UNREACHABLE = "127.0.0.1:9"
WORKER = f"""{LISTENERS}
bootstrap.servers={UNREACHABLE}
group.id=connect-cluster
offset.storage.topic=connect-offsets
config.storage.topic=connect-configs
status.storage.topic=connect-status
key.converter=org.apache.kafka.connect.converters.ByteArrayConverter
value.converter=org.apache.kafka.connect.converters.ByteArrayConverter
"""
DEDICATED = f"""{LISTENERS}
clusters=A,B
A.bootstrap.servers={UNREACHABLE}
B.bootstrap.servers={UNREACHABLE}
A->B.enabled=true
B->A.enabled=true
"""


def scrape(address: str) -> dict[Series, float]:
    """The series that a server exposes. Every name and type is that of a definition."""
    answer = request_once(address, "GET", "/metrics")
    assert answer.status == 200
    found = {}
    for family in text_string_to_metric_families(answer.content.decode()):
        for sample in family.samples:
            assert family.type == DEFINITIONS[sample.name].type
            assert sample.labels.keys() <= DEFINITIONS[sample.name].all_labels
            found[series(sample.name, **sample.labels)] = sample.value
    return found


@contextmanager
def serving(rest: RestServer) -> Iterator[tuple[str, ...]]:
    """The addresses of a server whose herders have not started."""
    rest.start()
    try:
        yield rest.addresses
    finally:
        rest.stop(1.0)


def test_a_worker_serves_metrics_on_both_listeners_before_it_reaches_its_cluster(
    tmp_path: Path,
) -> None:
    file = tmp_path / "worker.properties"
    file.write_text(WORKER)
    variables = {"XDG_STATE_HOME": str(tmp_path)}
    worker = ConnectWorker(WorkerFile.open(load_properties(file), variables), variables)
    with serving(worker.rest) as addresses:
        assert len(addresses) == 2
        for address in addresses:
            found = scrape(address)
            assert found[series("sparkmirror_worker_health", status="starting")] == 1
            assert found[series("kafka_connect_worker_task_count")] == 0


def test_a_node_of_dedicated_mode_serves_metrics_too(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(DEDICATED)
    variables = {"XDG_STATE_HOME": str(tmp_path)}
    opened = MirrorMakerConfig.open(load_properties(file), variables)
    with serving(MirrorMaker(opened, (), variables).rest) as addresses:
        assert len(addresses) == 2
        found = scrape(addresses[1])
        assert found[series("kafka_connect_worker_connector_count")] == 0
        assert found[series("sparkmirror_worker_health", status="starting")] == 1


def test_the_file_selects_the_names(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(f"{DEDICATED}sparkmirror.metrics.names=jmx\n")
    variables = {"XDG_STATE_HOME": str(tmp_path)}
    opened = MirrorMakerConfig.open(load_properties(file), variables)
    with serving(MirrorMaker(opened, (), variables).rest) as addresses:
        text = request_once(addresses[1], "GET", "/metrics").content.decode()
    assert "# TYPE kafka_connect_connect_worker_metrics_connector_count untyped\n" in text
    assert "kafka_connect_worker_connector_count" not in text
    assert "sparkmirror_metrics_left_out_series 0.0\n" in text


def test_a_node_does_not_start_without_the_port_of_its_metrics(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without `listeners` REST moves to a free port if its own is taken. The metrics do not."""
    monkeypatch.setattr(mirror_maker, "DEFAULT_LISTENERS", ("http://127.0.0.1:0",))
    file = tmp_path / "mm2.properties"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        clusters = DEDICATED.replace(LISTENERS, "")
        file.write_text(f"{clusters}sparkmirror.metrics.listener=http://127.0.0.1:{port}\n")
        variables = {"XDG_STATE_HOME": str(tmp_path)}
        opened = MirrorMakerConfig.open(load_properties(file), variables)
        node = MirrorMaker(opened, (), variables)
        with pytest.raises(ConfigError, match=f"cannot listen on http://127.0.0.1:{port}"):
            node.run(ShutdownSignal())
    assert "using a free one" not in caplog.text


def test_the_connectors_and_tasks_of_a_running_herder() -> None:
    with running_herder() as harness:
        herder, monitor, rebalances = harness.herder, WorkerMonitor(), RebalanceTimes()
        herder.put_connector_config("src", named_config("src", SOURCE_CONFIG))
        herder.put_connector_config("hb", named_config("hb", HEARTBEAT_CONFIG))
        harness.wait_for_states("src", "RUNNING", "RUNNING", "RUNNING")
        harness.wait_for_states("hb", "RUNNING", "RUNNING")
        measured = MeasuredHerder(herder=herder, rebalances=rebalances)
        metrics = WorkerMetrics([measured], monitor, herder.health)
        options = RestOptions(get_figures=metrics.figures, access_log=False)
        with running_rest_server(herder, options) as server:
            found = scrape(server.address)
    assert found[series("kafka_connect_worker_connector_count")] == 2
    assert found[series("kafka_connect_worker_task_count")] == 3
    assert found[series("kafka_connect_worker_connector_running_task_count", connector="src")] == 2
    assert found[series("sparkmirror_worker_health", status="healthy")] == 1
    status = {"connector": "src", "task": "1", "status": "running"}
    assert found[series("kafka_connect_connector_status", **status)] == 1
    assert found[series("sparkmirror_problems", connector="src")] == 0

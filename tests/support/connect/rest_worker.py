"""A whole Connect worker in this process: herder, group membership and REST server.

It has the real connectors. Those without Spark, like heartbeats, run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from sparkmirror.config.files.properties import load_properties
from sparkmirror.config.files.worker_file import WorkerFile
from sparkmirror.lab.processes.port_registry import PortRegistry
from sparkmirror.worker.connect_worker import ConnectWorker
from tests.support.connect.kafka_herder import worker_config
from tests.support.kafka.clusters import SharedCluster


class RestWorker:
    """A running worker and its address."""

    def __init__(self, worker: ConnectWorker, worker_id: str) -> None:
        self.worker = worker
        self.worker_id = worker_id

    @property
    def url(self) -> str:
        """The URL of its REST server."""
        return self.worker.rest.address


@contextmanager
def running_rest_worker(
    cluster: SharedCluster,
    group: str,
    directory: Path,
    keys: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    protocol: str = "http",
) -> Iterator[RestWorker]:
    """A worker of a group, with a port of its own, until the end of the block."""
    directory.mkdir()
    [port] = PortRegistry().claim(1, directory)
    config = {
        **worker_config(cluster, group),
        "listeners": f"{protocol}://127.0.0.1:{port}",
        **(keys or {}),
    }
    file = directory / "worker.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in config.items()))
    variables = {"XDG_STATE_HOME": str(directory), **(environment or {})}
    worker = ConnectWorker(WorkerFile.open(load_properties(file), variables), variables)
    worker.start()
    try:
        assert worker.herder.await_started(60)
        yield RestWorker(worker, f"127.0.0.1:{port}")
    finally:
        worker.stop()

"""A real Spark cluster on this computer: a master and workers from the installed pyspark."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sparkmirror.engine.driver.fast_start_spark_home import linked_spark_home
from sparkmirror.engine.driver.spark_conf import FAST_START_JVM_OPTIONS, LOOPBACK
from sparkmirror.lab.processes.port_registry import PortRegistry
from sparkmirror.lab.processes.process_identity import Process
from sparkmirror.lab.processes.process_reaper import ProcessReaper
from tests.support.processes import RunningProcess, session_processes
from tests.support.waiting import wait_until

EXECUTOR = "CoarseGrainedExecutorBackend"
PYTHON_WORKER = "daemon pyspark.worker"


@dataclass(frozen=True, slots=True, kw_only=True)
class StandaloneCluster:
    """A master and its workers."""

    master: str
    workers: list[Process]
    _launch_worker: Callable[[int], Process]

    def add_worker(self, cores: int = 1) -> None:
        """Start a worker with so many slots; returns at once."""
        self.workers.append(self._launch_worker(cores))

    def executors(self) -> list[RunningProcess]:
        """The executors that run now."""
        return [one for worker in self.workers for one in session_processes(worker.pid, EXECUTOR)]

    def tasks(self) -> list[RunningProcess]:
        """The Python processes in which tasks run."""
        return [
            one for worker in self.workers for one in session_processes(worker.pid, PYTHON_WORKER)
        ]


def jvm_options() -> str:
    """Return the options with which masters, workers and executors start as quickly as drivers."""
    home = linked_spark_home(os.environ)
    assert home
    return f"{FAST_START_JVM_OPTIONS} -XX:SharedArchiveFile={home.cds_archive}"


@contextmanager
def running_standalone_cluster(
    reaper: ProcessReaper, directory: Path, workers: int, port: int | None = None
) -> Iterator[StandaloneCluster]:
    """Start a master, on a free port unless one is given, and workers with one slot each.

    They end with the block.
    """
    home = linked_spark_home(os.environ)
    assert home
    environ = {
        **os.environ,
        "SPARK_HOME": str(home.path),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": jvm_options(),
        "SPARK_LAUNCHER_OPTS": FAST_START_JVM_OPTIONS,
    }
    if port is None:
        [port] = PortRegistry().claim(1, directory)
    master = f"spark://{LOOPBACK}:{port}"

    def launch(name: str, *arguments: str) -> Process:
        command = [str(home.path / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
        log = directory / f"{name}-{len(started)}"
        address = ["--host", LOOPBACK, "--webui-port", "0"]
        process = reaper.launch([*command, *address, *arguments], log=log, environ=environ)
        started.append(process)
        return process

    def launch_worker(cores: int) -> Process:
        size = ["--cores", str(cores), "--memory", "600m"]
        work = ["--work-dir", str(directory / f"work-{len(started)}")]
        return launch("worker.Worker", *size, *work, master)

    started: list[Process] = []
    try:
        launch("master.Master", "--port", str(port))
        wait_until(lambda: _is_listening(port), "the master to listen", timeout_s=180)
        cluster = StandaloneCluster(master=master, workers=[], _launch_worker=launch_worker)
        for _ in range(workers):
            cluster.add_worker()
        yield cluster
    finally:
        for process in started:
            _stop_process(process)
            reaper.unregister(process)


def _stop_process(process: Process) -> None:
    for member in session_processes(process.pid):
        member.kill()
    assert process.wait_for_exit(60)


def _is_listening(port: int) -> bool:
    try:
        socket.create_connection((LOOPBACK, port), timeout=1).close()
    except OSError:
        return False
    return True

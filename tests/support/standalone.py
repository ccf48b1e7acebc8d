"""A real Spark cluster on this computer: a master and workers from the installed pyspark."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from sparkmirror.engine.conf import LOOPBACK, QUICK_JVM
from sparkmirror.lab.guard import Guard
from sparkmirror.lab.ports import Ports
from sparkmirror.lab.process import Process
from tests.support.processes import Seen, of_session
from tests.support.waiting import wait_until

EXECUTOR = "CoarseGrainedExecutorBackend"
TASK = "daemon pyspark.worker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standalone:
    """A cluster with one slot per worker."""

    master: str
    workers: list[Process]

    def executors(self) -> list[Seen]:
        """The executors that run now."""
        return [one for worker in self.workers for one in of_session(worker.pid, EXECUTOR)]

    def tasks(self) -> list[Seen]:
        """The Python processes in which tasks run."""
        return [one for worker in self.workers for one in of_session(worker.pid, TASK)]


@contextmanager
def standalone(guard: Guard, directory: Path, workers: int) -> Iterator[Standalone]:
    """Start a cluster; it ends with the block."""
    found = find_spec("pyspark")
    assert found
    assert found.origin
    home = Path(found.origin).parent
    environ = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": QUICK_JVM,
        "SPARK_LAUNCHER_OPTS": QUICK_JVM,
    }
    [port] = Ports().claim(1, directory)
    master = f"spark://{LOOPBACK}:{port}"

    def launch(name: str, *arguments: str) -> Process:
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
        log = directory / f"{name}-{len(started)}"
        where = ["--host", LOOPBACK, "--webui-port", "0"]
        process = guard.launch([*command, *where, *arguments], log=log, environ=environ)
        started.append(process)
        return process

    started: list[Process] = []
    try:
        launch("master.Master", "--port", str(port))
        wait_until(lambda: _listens(port), "the master to listen", timeout_s=180)
        size = ["--cores", "1", "--memory", "600m"]
        made = [
            launch("worker.Worker", *size, "--work-dir", str(directory / f"work-{number}"), master)
            for number in range(workers)
        ]
        yield Standalone(master=master, workers=made)
    finally:
        for process in started:
            _end(process)
            guard.forget(process)


def _end(process: Process) -> None:
    for seen in of_session(process.pid):
        seen.kill()
    assert process.ended_within(60)


def _listens(port: int) -> bool:
    try:
        socket.create_connection((LOOPBACK, port), timeout=1).close()
    except OSError:
        return False
    return True

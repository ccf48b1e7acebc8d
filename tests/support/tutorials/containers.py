"""Containers of a tutorial as processes of this computer: the entry point of the image."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from sparkmirror.lab.processes.port_registry import PortRegistry
from tests.support.cli.mirror_process import SPARK_TIMEOUT_S, MirrorProcess, running_process
from tests.support.spark.mirrored_clusters import MirroredClusters
from tests.support.waiting import wait_until

_POLL_S = 5.0
_ENTRYPOINT = """
import os, sys
from pathlib import Path
from sparkmirror.cli.container.entrypoint import container_start, run
file = Path(sys.argv[1])
run(container_start(sys.argv[2:], os.environ, Path.cwd(), file), file)
"""


def free_ports(count: int, owner: Path) -> list[int]:
    """Return ports that stay reserved while the directory exists."""
    return PortRegistry().claim(count, owner)


@contextmanager
def running_container(
    command: Sequence[str],
    work_directory: Path,
    environment: Mapping[str, str],
    worker_file: Path,
) -> Iterator[MirrorProcess]:
    """Run the entry point of the image with the command and environment of a container.

    It writes the worker's file to `worker_file` instead of `/etc/kafka-connect`.
    """
    entrypoint = [sys.executable, "-c", _ENTRYPOINT, str(worker_file), *command]
    with running_process(entrypoint, work_directory, environment) as program:
        yield program


@contextmanager
def running_terminal(
    command: str, directory: Path, environment: Mapping[str, str]
) -> Iterator[subprocess.Popen[str]]:
    """Run a command that does not end by itself in the block; end all its processes with it."""
    process = subprocess.Popen(
        ["bash", "-c", command],
        cwd=directory,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdout:
            process.stdout.close()


def wait_until_copied(
    program: MirrorProcess,
    clusters: MirroredClusters,
    topic: str,
    remote: str,
    partitions: int = 1,
) -> None:
    """Wait until a topic is copied, as long as the program runs."""

    def is_copied() -> bool:
        assert program.is_running(), f"the program has ended: {program.output[-3000:]}"
        try:
            clusters.wait_until_copied(topic, remote, partitions, _POLL_S)
        except AssertionError:
            return False
        return True

    wait_until(is_copied, f"{remote} to be copied", SPARK_TIMEOUT_S)

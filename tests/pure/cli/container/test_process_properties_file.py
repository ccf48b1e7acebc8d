"""The health check finds the file of the worker or mirror by the processes of the container."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sparkmirror.cli.container.process_properties_file import (
    file_of_command,
    process_properties_file,
)

PYTHON = "/opt/sparkmirror/bin/python3"
WORKER = "/opt/sparkmirror/bin/connect-distributed.sh"


@pytest.mark.parametrize(
    ("command", "file"),
    [
        ([PYTHON, WORKER, "/etc/kafka-connect/w.properties"], "/etc/kafka-connect/w.properties"),
        (["python", "/opt/kafka/bin/connect-mirror-maker.sh", "./a.properties"], "./a.properties"),
        ([PYTHON, "/x/connect-mirror-maker", "a b", "--clusters", "A", "B"], "a b"),
        ([PYTHON, "/x/connect-mirror-maker", "--help"], None),
        ([PYTHON, "/opt/sparkmirror/bin/sparkmirror", "worker", "w"], "w"),
        ([PYTHON, "/x/sparkmirror", "run", "--clusters", "A", "--log-format", "json", "f"], "f"),
        ([PYTHON, "/x/sparkmirror", "run", "--clusters=A", "f"], "f"),
        ([PYTHON, "/x/sparkmirror", "status", "f"], None),
        ([PYTHON, "-m", "sparkmirror.cli.container.entrypoint", WORKER, "f"], None),
        (["/usr/bin/tini", "--", "python", WORKER, "f"], None),
        (["bash", "-c", f"{WORKER} f"], None),
        ([PYTHON, WORKER], None),
        ([""], None),
    ],
)
def test_file_of_a_command_line(command: list[str], file: str | None) -> None:
    assert file_of_command(command) == file


def add_process(processes: Path, number: int, directory: Path, *command: str) -> None:
    process = processes / str(number)
    process.mkdir(parents=True)
    (process / "cmdline").write_bytes(b"".join(f"{word}\0".encode() for word in command))
    (process / "cwd").symlink_to(directory)


def test_first_process_counts_and_its_path_begins_in_its_work_directory(tmp_path: Path) -> None:
    processes = tmp_path / "proc"
    add_process(processes, 1, tmp_path, "/usr/bin/tini", "--", "python", WORKER, "w.properties")
    add_process(processes, 10, tmp_path / "later", PYTHON, WORKER, "later.properties")
    add_process(processes, 7, tmp_path / "work", PYTHON, WORKER, "../w.properties")
    add_process(processes, 8, tmp_path, PYTHON, "-m", "sparkmirror.engine.driver.driver_main")
    (processes / "self").mkdir()
    (processes / "2").mkdir()
    assert process_properties_file(processes) == tmp_path / "work" / "../w.properties"


def test_without_a_worker_there_is_no_file(tmp_path: Path) -> None:
    add_process(tmp_path, 1, tmp_path, "sleep", "1000")
    assert process_properties_file(tmp_path) is None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")
def test_process_of_this_computer_is_found(tmp_path: Path) -> None:
    script = tmp_path / "connect-distributed.sh"
    script.write_text("print('started', flush=True)\ninput()\n", "ascii")
    command = [sys.executable, str(script), "other.properties"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        own = tmp_path / "proc"
        own.mkdir()
        (own / str(process.pid)).symlink_to(f"/proc/{process.pid}")
        assert process_properties_file(own) == tmp_path / "other.properties"
        process.communicate("\n")

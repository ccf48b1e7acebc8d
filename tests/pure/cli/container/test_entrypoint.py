"""What a container starts, and how: the file of a worker, the process that it becomes."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from sparkmirror.cli.container.entrypoint import (
    USAGE,
    CannotStart,
    container_start,
    write_worker_file,
)
from tests.support.cli.tutorial_files import QUICKSTART_WORKER_FILE

QUICKSTART = {
    "CONNECT_BOOTSTRAP_SERVERS": "broker:29092",
    "CONNECT_REST_PORT": "28082",
    "CONNECT_GROUP_ID": '"quickstart"',
    "CONNECT_CONFIG_STORAGE_TOPIC": "quickstart_config",
    "CONNECT_CONFIG_STORAGE_REPLICATION_FACTOR": "1",
    "CONNECT_OFFSET_STORAGE_TOPIC": "quickstart_offsets",
    "CONNECT_OFFSET_STORAGE_REPLICATION_FACTOR": "1",
    "CONNECT_STATUS_STORAGE_TOPIC": "quickstart_status",
    "CONNECT_STATUS_STORAGE_REPLICATION_FACTOR": "1",
    "CONNECT_KEY_CONVERTER": "org.apache.kafka.connect.converters.ByteArrayConverter",
    "CONNECT_VALUE_CONVERTER": "org.apache.kafka.connect.converters.ByteArrayConverter",
    "CONNECT_REST_ADVERTISED_HOST_NAME": '"localhost"',
    "CONNECT_CONNECTOR_CLIENT_CONFIG_OVERRIDE_POLICY": "All",
}


@pytest.fixture
def mirror_directory(tmp_path: Path) -> Path:
    """A work directory with the file of a dedicated mirror."""
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "mm2-config.properties").write_text("clusters=a,b\n", "ascii")
    return tmp_path


def test_given_command_runs_whatever_else_there_is(mirror_directory: Path) -> None:
    command = ("bash", "-c", "ps -efww")
    start = container_start(command, QUICKSTART, mirror_directory)
    assert start.command == command
    assert start.worker_properties is None


def test_variables_start_a_worker_with_the_path_of_its_file_last(mirror_directory: Path) -> None:
    start = container_start((), QUICKSTART, mirror_directory)
    assert start.command == (
        "connect-distributed.sh",
        "/etc/kafka-connect/kafka-connect.properties",
    )
    assert start.worker_properties is not None
    lines = start.worker_properties.splitlines()
    assert lines == sorted(QUICKSTART_WORKER_FILE.splitlines())
    assert start.notes == ()


LOG_LEVELS = {"CONNECT_LOG4J_ROOT_LOGLEVEL": "WARN", "CONNECT_LOG4J_LOGGERS": "a.b=DEBUG"}


def test_log_levels_are_a_variable_of_the_command(mirror_directory: Path) -> None:
    for environment in ({**QUICKSTART, **LOG_LEVELS}, LOG_LEVELS):
        start = container_start((), environment, mirror_directory)
        assert start.variables == {"SPARKMIRROR_LOG_LEVELS": "root=WARN,a.b=DEBUG"}
        assert start.notes == ()


def test_log_levels_count_for_a_given_command_too(mirror_directory: Path) -> None:
    start = container_start(("connect-distributed.sh", "w"), LOG_LEVELS, mirror_directory)
    assert start.variables == {"SPARKMIRROR_LOG_LEVELS": "root=WARN,a.b=DEBUG"}


def test_file_in_the_work_directory_starts_its_flows(mirror_directory: Path) -> None:
    services = {"CONNECT_SERVICE_HOST": "10.0.0.1"}
    start = container_start((), services, mirror_directory)
    assert start.command == ("connect-mirror-maker.sh", "./config/mm2-config.properties")
    assert len(start.notes) == 1


def test_nothing_to_start_is_the_usage(tmp_path: Path) -> None:
    with pytest.raises(CannotStart) as raised:
        container_start((), {}, tmp_path)
    assert str(raised.value) == USAGE


def test_missing_variables_are_listed(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match="not set:\n  CONNECT_BOOTSTRAP_SERVERS\n"):
        container_start((), {"CONNECT_REST_PORT": "8083"}, tmp_path)


def test_worker_file_is_for_its_owner_only_and_replaces_an_older_one(tmp_path: Path) -> None:
    file = tmp_path / "etc" / "kafka-connect.properties"
    file.parent.mkdir()
    file.write_text("older\n", "ascii")
    file.chmod(0o644)
    write_worker_file(file, "group.id=g\n")
    assert file.read_text("ascii") == "group.id=g\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "etc").write_text("a file, not a directory", "ascii")
    with pytest.raises(CannotStart, match="mount a volume at"):
        write_worker_file(tmp_path / "etc" / "kafka-connect.properties", "")


def run_entrypoint(
    directory: Path, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run the module as the image does."""
    return subprocess.run(
        [sys.executable, "-m", "sparkmirror.cli.container.entrypoint", *arguments],
        cwd=directory,
        env={"PATH": os.environ["PATH"], **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_command_replaces_the_entry_point(tmp_path: Path) -> None:
    ran = run_entrypoint(tmp_path, "sh", "-c", "echo $0 $1; exit 7", "a b", "c")
    assert (ran.returncode, ran.stdout, ran.stderr) == (7, "a b c\n", "")


def test_unknown_command_ends_with_127_and_nothing_to_start_with_1(tmp_path: Path) -> None:
    assert run_entrypoint(tmp_path, "no-such-command").returncode == 127
    nothing = run_entrypoint(tmp_path)
    assert (nothing.returncode, nothing.stderr) == (1, USAGE)


def test_mounted_file_reaches_the_script_of_kafkas_name(mirror_directory: Path) -> None:
    script = mirror_directory / "bin" / "connect-mirror-maker.sh"
    script.parent.mkdir()
    script.write_text('#!/bin/sh\necho "$PPID $SPARKMIRROR_LOG_LEVELS $*"\n', "ascii")
    script.chmod(0o755)
    path = f"{script.parent}:{os.environ['PATH']}"
    ran = run_entrypoint(mirror_directory, PATH=path, **LOG_LEVELS)
    parent, levels, arguments = ran.stdout.split()
    assert levels == "root=WARN,a.b=DEBUG"
    assert int(parent) == os.getpid(), "the script has the process of the entry point"
    assert arguments == "./config/mm2-config.properties"

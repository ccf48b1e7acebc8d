"""The unit `kafka-connect.service` runs a worker, logs where the workshop looks, and drains."""

from __future__ import annotations

import configparser
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
UNIT = ROOT / "deploy" / "systemd" / "kafka-connect.service"


def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(UNIT.read_text("utf-8"))
    return parser


@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze on this computer"
)
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    text = UNIT.read_text("utf-8")
    program = unit()["Service"]["ExecStart"].split()[0]
    copy = tmp_path / UNIT.name
    copy.write_text(text.replace(program, "/bin/true"), "utf-8")
    assert verification_messages(copy) == []
    copy.write_text(copy.read_text("utf-8").replace("KillMode=", "KillMood="), "utf-8")
    assert "KillMood" in "".join(verification_messages(copy)), "it reads this file"


def verification_messages(file: Path) -> list[str]:
    """What `systemd-analyze verify` says of this unit; units of the computer may be faulty."""
    ran = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", file],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = (ran.stdout + ran.stderr).splitlines()
    return [line for line in lines if file.name in line]


def test_unit_runs_a_script_of_the_package_on_the_file_of_the_workshop() -> None:
    program, file = unit()["Service"]["ExecStart"].split()
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    assert Path(program).name in scripts
    assert file == "/tmp/kafka/connect-distributed.properties"  # noqa: S108 - the path of the workshop


def test_log_is_the_file_that_the_workshop_reads() -> None:
    assert unit()["Service"]["StandardOutput"] == "append:/tmp/kafka/kafka-connect.log"
    assert "PrivateTmp" not in unit()["Service"], "the log would be in a /tmp of its own"


def test_stop_gives_the_worker_time_to_drain_and_signals_only_it() -> None:
    service = unit()["Service"]
    assert int(service["TimeoutStopSec"]) >= 60
    assert service["KillMode"] == "mixed"
    assert service["Restart"] == "on-failure"

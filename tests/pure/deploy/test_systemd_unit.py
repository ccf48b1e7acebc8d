"""The unit `kafka-connect.service` runs a worker, logs where the workshop looks, and drains."""

from __future__ import annotations

import configparser
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]


def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string((ROOT / "deploy" / "systemd" / "kafka-connect.service").read_text("utf-8"))
    return parser


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

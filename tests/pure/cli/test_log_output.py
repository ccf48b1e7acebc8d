"""The log of a worker: standard output, the file of `LOG_DIR`, Connect's pattern, JSON."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror import logging_context
from sparkmirror.cli.log_output import LogFormat, install_log
from sparkmirror.errors import ConfigError
from tests.support.waiting import wait_until

log = logging.getLogger("somewhere")
CONNECT_PATTERN = re.compile(
    r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] WARN \[c\|task-0\] lost x \(somewhere:\d+\)\n"
)
"""What `[%d] %p %X{connector.context}%m (%c:%L)%n` writes."""


@pytest.fixture(autouse=True)
def restored_root_logger() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    for handler in set(root.handlers) - set(handlers):
        root.removeHandler(handler)
        handler.close()
    root.setLevel(level)


def write_line() -> None:
    with logging_context.context(connector="c", task=0):
        log.warning("lost %s", "x")


def test_lines_have_connects_pattern_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    install_log(LogFormat.CONNECT, {})
    write_line()
    assert CONNECT_PATTERN.fullmatch(capsys.readouterr().out)


def test_log_dir_has_the_same_lines_in_the_foreground(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "made" / "logs"
    install_log(LogFormat.CONNECT, {"LOG_DIR": str(directory)})
    write_line()
    written = (directory / "kafka-connect.log").read_text("utf-8")
    assert CONNECT_PATTERN.fullmatch(written)
    assert capsys.readouterr().out == written


def test_file_that_logrotate_moved_away_is_made_again(tmp_path: Path) -> None:
    install_log(LogFormat.CONNECT, {"LOG_DIR": str(tmp_path)})
    write_line()
    (tmp_path / "kafka-connect.log").rename(tmp_path / "kafka-connect.log.1")
    log.info("next")
    assert "next" in (tmp_path / "kafka-connect.log").read_text("utf-8")


def test_log_dir_that_cannot_be_written_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "logs").write_text("a file, not a directory", "ascii")
    install_log(LogFormat.CONNECT, {"LOG_DIR": str(tmp_path / "logs")})
    write_line()
    first, second = capsys.readouterr().out.splitlines()
    assert "LOG_DIR=" in first and "standard output only" in first
    assert "lost x" in second


def test_json_has_an_object_in_each_line(capsys: pytest.CaptureFixture[str]) -> None:
    install_log(LogFormat.JSON, {})
    write_line()
    try:
        raise ValueError("two\nlines")
    except ValueError:
        log.exception("failed")
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    line, at = first.pop("line"), first.pop("timestamp")
    assert isinstance(line, int)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", at)
    assert first == {
        "level": "WARN",
        "logger": "somewhere",
        "context": "c|task-0",
        "message": "lost x",
    }
    assert second["level"] == "ERROR" and "context" not in second
    assert second["exception"].endswith("ValueError: two\nlines")


def test_variable_chooses_the_format_for_kafkas_scripts() -> None:
    assert LogFormat.of({}) is LogFormat.CONNECT
    assert LogFormat.of({"SPARKMIRROR_LOG_FORMAT": "JSON"}) is LogFormat.JSON
    with pytest.raises(ConfigError, match="SPARKMIRROR_LOG_FORMAT=xml.*connect or json"):
        LogFormat.of({"SPARKMIRROR_LOG_FORMAT": "xml"})


def run_script(script: str, *arguments: str, directory: Path, **variables: str) -> int:
    """Run a script of Kafka's as a process and return its exit code."""
    program = Path(sys.executable).with_name(script)
    environment = {"PATH": os.environ["PATH"], **variables}
    return subprocess.run(
        [program, *arguments], cwd=directory, env=environment, check=False, capture_output=True
    ).returncode


@pytest.mark.parametrize(
    ("variables", "file"),
    [({}, "logs/kafka-connect.log"), ({"LOG_DIR": "elsewhere"}, "elsewhere/kafka-connect.log")],
)
def test_daemon_writes_the_file_once_and_the_script_ends(
    variables: dict[str, str], file: str, tmp_path: Path
) -> None:
    """Standard output of the daemon is the file, so that no line is in it twice."""
    arguments = ("-daemon", "no-such-file.properties")
    assert run_script("connect-distributed.sh", *arguments, directory=tmp_path, **variables) == 0
    path = tmp_path / file
    wait_until(lambda: path.is_file() and "Stopping due" in path.read_text("utf-8"), "no log")
    assert path.read_text("utf-8").count("Stopping due to error") == 1


def test_daemon_without_a_directory_for_its_log_says_which_variable_to_set(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file, not a directory", "ascii")
    ran = subprocess.run(
        [Path(sys.executable).with_name("connect-mirror-maker.sh"), "-daemon", "mm2.properties"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert "export LOG_DIR=/tmp/logs" in ran.stderr

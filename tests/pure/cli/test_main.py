"""The front door: help, unknown commands, and exit codes that scripts can trust."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sparkmirror", *words], capture_output=True, text=True, check=False
    )


def test_help_names_every_command_and_fits_a_screen() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert {"config", "demo", "lab"} <= set(done.stdout.split())
    assert len(done.stdout.splitlines()) < 25


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nonsense",), "No such command"),
        (("config", "flows"), "Missing argument"),
        (("config", "flows", "/does/not/exist"), "there is no such file"),
    ],
    ids=["unknown", "missing", "no-file"],
)
def test_bad_usage_is_one_sentence_and_exit_code_1(words: tuple[str, ...], said: str) -> None:
    done = run(*words)
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_fault_in_a_file_is_exit_code_1(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text("clusters=A,B\nA->B.enabled=true\nA->B.tasks.max=many\n")
    done = run("config", "validate", str(file))
    assert done.returncode == 1
    assert "tasks.max" in done.stdout + done.stderr


def test_a_reader_that_goes_away_is_no_reason_to_complain() -> None:
    done = subprocess.run(
        ["bash", "-c", f"{shlex.quote(sys.executable)} -m sparkmirror --help | head -1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stderr == ""

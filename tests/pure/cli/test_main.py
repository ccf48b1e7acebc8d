"""`sparkmirror`: help, errors and exit codes, as a process where that makes a difference."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sparkmirror.cli import main

Call = Callable[..., tuple[object, str, str]]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sparkmirror", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_help_lists_commands_in_less_than_25_lines() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert {"config", "demo", "lab"} <= set(done.stdout.split())
    assert len(done.stdout.splitlines()) < 25


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Call the program in this process; returns its exit code and what it prints."""

    def called(*arguments: str) -> tuple[object, str, str]:
        monkeypatch.setattr(sys, "argv", ["sparkmirror", *arguments])
        with pytest.raises(SystemExit) as ended:
            main.main()
        printed = capsys.readouterr()
        return ended.value.code, printed.out, printed.err

    return called


def test_a_process_ends_with_1_for_bad_usage() -> None:
    done = run("nonsense")
    assert done.returncode == 1
    assert "No such command" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("config", "flows"), "Missing argument"),
        (("config", "flows", "/does/not/exist"), "there is no such file"),
    ],
    ids=["missing", "no-file"],
)
def test_bad_usage_prints_an_error_and_exits_1(
    call: Call, arguments: tuple[str, ...], message: str
) -> None:
    code, _, printed = call(*arguments)
    assert code == 1
    assert message in printed


def test_ctrl_c_exits_130_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def press_ctrl_c(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(main.cli, "main", press_ctrl_c)
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert (ended.value.code, capsys.readouterr().err) == (130, "Interrupted.\n")


def test_config_fault_exits_1(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text("clusters=A,B\nA->B.enabled=true\nA->B.tasks.max=many\n")
    code, output, errors = call("config", "validate", str(file))
    assert code == 1
    assert "tasks.max" in output + errors


@pytest.mark.parametrize("command", [("status",), ("groups", "explain")], ids=" ".join)
def test_no_worker_at_the_url_exits_1_and_names_the_url(
    call: Call, command: tuple[str, ...]
) -> None:
    code, _, errors = call(*command, "--url", "http://127.0.0.1:1")
    assert code == 1
    assert "no worker answers at http://127.0.0.1:1" in errors


def test_closed_pipe_is_no_error() -> None:
    done = subprocess.run(
        ["bash", "-c", f"{shlex.quote(sys.executable)} -m sparkmirror --help | head -1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stderr == ""

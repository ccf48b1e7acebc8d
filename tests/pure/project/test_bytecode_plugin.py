"""Test files are compiled once, before the workers of a run start."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.bytecode_plugin import NOT_COMPILED
from tests.support.nested_pytest import run_nested_pytest

WORKERS_COMPILE_NOTHING = """
from _pytest.assertion import rewrite
def refuse(file, config):
    raise AssertionError(f"a worker compiles {file}")
def pytest_configure(config):
    if hasattr(config, "workerinput"):
        rewrite._rewrite_test = refuse
"""


@pytest.mark.parametrize(
    ("options", "code", "printed"),
    [
        (("-p", "tests.bytecode_plugin"), 0, "1 passed"),
        ((), 1, "a worker compiles"),
    ],
)
def test_workers_find_test_files_compiled(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    code: int,
    printed: str,
) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    (tmp_path / "conftest.py").write_text(WORKERS_COMPILE_NOTHING)
    source = "def test_it():\n    assert True\n"
    done = run_nested_pytest(tmp_path, source, "", "-n1", *options)
    assert done.returncode == code, done.stdout
    assert printed in done.stdout


@pytest.mark.parametrize(
    ("file", "is_compiled"),
    [
        ("src/sparkmirror/errors.py", True),
        ("tests/support/waiting.py", True),
        ("tests/pure/conftest.py", False),
        ("tests/pure/test_backoff.py", False),
        ("tests/tutorials/003/own/send_products.py", False),
    ],
)
def test_what_pytest_compiles_and_programs_of_tutorials_are_left_out(
    file: str, is_compiled: bool
) -> None:
    assert (re.search(NOT_COMPILED, file) is None) == is_compiled

"""Compiles what the workers of a run import, before they start.

In a fresh checkout each worker would compile the package and all tests for itself, at the same time
as the others. pytest stores test files in a form of its own, with the values of failed assertions.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from _pytest.assertion.rewrite import (
    PYC_TAIL,
    _read_pyc,
    _rewrite_test,
    _write_pyc,
    assertstate_key,
    get_cache_dir,
)

ROOT = Path(__file__).parents[1]
TEST_FILES = ("test_*.py", "conftest.py")
"""What pytest compiles."""
NOT_COMPILED = r"/(test_[^/]*|conftest)\.py$|^tests/tutorials/"
"""Test files, and programs of tutorials: no worker imports them."""


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile the package and the tests of a run that has workers. Only its controller does."""
    config = session.config
    is_worker = hasattr(config, "workerinput")
    if is_worker or sys.dont_write_bytecode or not config.getoption("tx", None):
        return
    command = [sys.executable, "-m", "compileall", "-q", "-x", NOT_COMPILED, "src", "tests"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL):
        given = (config.invocation_params.dir / one.partition("::")[0] for one in config.args)
        compile_tests(files_to_compile(given), config)


def files_to_compile(given: Iterable[Path]) -> Iterator[Path]:
    """Return the given files, and the test files of the given directories."""
    for path in given:
        if path.is_dir():
            for pattern in TEST_FILES:
                yield from path.rglob(pattern)
        elif path.is_file():
            yield path


def compile_tests(files: Iterable[Path], config: pytest.Config) -> None:
    """Store each file as pytest does. A file that is stored already stays."""
    for file in files:
        stored = stored_file(file)
        if _read_pyc(file, stored) is None:
            source_hash, code = _rewrite_test(file, config)
            stored.parent.mkdir(exist_ok=True)
            _write_pyc(config.stash[assertstate_key], code, source_hash, stored)


def stored_file(file: Path) -> Path:
    """Return where pytest stores a compiled test file."""
    return get_cache_dir(file) / f"{file.stem}{PYC_TAIL}"

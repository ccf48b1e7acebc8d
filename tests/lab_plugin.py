"""Fixtures of all tests that start processes: one reaper and one directory per test run."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.lab.processes.process_reaper import ProcessReaper


@pytest.fixture(scope="session")
def reaper() -> Iterator[ProcessReaper]:
    """Ends all processes of this test run when it ends, even if it is killed."""
    with ProcessReaper.start() as started:
        yield started


@pytest.fixture(scope="session")
def lab_directory(reaper: ProcessReaper) -> Path:
    """A directory for clusters; the reaper removes it."""
    directory = Path(tempfile.mkdtemp(prefix="sparkmirror-tests-"))
    reaper.remove_on_exit(directory)
    return directory

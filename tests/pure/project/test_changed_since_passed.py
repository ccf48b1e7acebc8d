"""`.ci/changed` tells whether files differ from those with which some tests passed last."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / ".ci" / "changed"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with the script and two files."""
    for name in (".ci", "lab", "image"):
        (tmp_path / name).mkdir()
    shutil.copy(SCRIPT, tmp_path / ".ci")
    (tmp_path / "lab" / "a file.py").write_text("1", "utf-8")
    (tmp_path / "image" / "Dockerfile").write_text("1", "utf-8")
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    subprocess.run(["git", "add", "--all"], cwd=tmp_path, check=True)
    return tmp_path


def has_changed(checkout: Path, name: str) -> bool:
    return subprocess.run([".ci/changed", name, name], cwd=checkout, check=False).returncode == 0


def record(checkout: Path, name: str) -> None:
    subprocess.run([".ci/changed", "--record", name, name], cwd=checkout, check=True)


def test_files_that_never_passed_have_changed(checkout: Path) -> None:
    assert has_changed(checkout, "lab")


def test_files_have_not_changed_until_one_is_written_added_or_removed(checkout: Path) -> None:
    record(checkout, "lab")
    record(checkout, "image")
    assert not has_changed(checkout, "lab")
    file = checkout / "lab" / "a file.py"
    file.write_text("2", "utf-8")
    assert has_changed(checkout, "lab")
    assert not has_changed(checkout, "image")
    file.write_text("1", "utf-8")
    assert not has_changed(checkout, "lab")
    added = checkout / "lab" / "new.py"
    added.write_text("", "utf-8")
    assert has_changed(checkout, "lab")
    added.unlink()
    file.unlink()
    assert has_changed(checkout, "lab")


def test_where_git_cannot_list_the_files_they_have_changed(checkout: Path) -> None:
    record(checkout, "lab")
    shutil.rmtree(checkout / ".git")
    assert has_changed(checkout, "lab")
    record(checkout, "lab")
    assert has_changed(checkout, "lab")

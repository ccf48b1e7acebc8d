"""The source tree of an earlier commit, to run beside this one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

COMMIT = os.environ.get("PREVIOUS_COMMIT") or "HEAD^"
"""The earlier commit; without the variable the one before the last."""
NO_COMMIT = f"git has no commit {COMMIT} here; name one in PREVIOUS_COMMIT"
ROOT = Path(__file__).parents[2]


def has_previous_version() -> bool:
    """Whether the commit is known; in an archive without history it is not."""
    try:
        found = _git("cat-file", "-e", f"{COMMIT}:src")
    except OSError:
        return False
    return found.returncode == 0


def previous_source(directory: Path) -> Path:
    """Write the earlier tree to a directory; return what PYTHONPATH has to name."""
    archive = directory / "previous.tar"
    made = _git("archive", f"--output={archive}", COMMIT, "src")
    assert made.returncode == 0, made.stderr
    subprocess.run(["tar", "-xf", str(archive), "-C", str(directory)], check=True)
    return directory / "src"


def _git(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

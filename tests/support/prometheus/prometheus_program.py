"""Finds Prometheus and promtool; `python -m` it to fetch them where they are missing.

They are on PATH, or in the directory of the virtual environment to which this program unpacks
Debian's package. It needs apt and dpkg and no right of root.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

PACKAGE = "prometheus"
DIRECTORY = Path(sys.prefix) / "prometheus"
"""Where the package is unpacked."""
_APT_TIMEOUT_S = 300


def find_program(name: str) -> str | None:
    """Return the path of `prometheus` or `promtool`; None if there is none."""
    unpacked = DIRECTORY / "usr" / "bin"
    return shutil.which(name, path=os.pathsep.join([str(unpacked), os.environ.get("PATH", "")]))


needs_prometheus = pytest.mark.skipif(
    find_program("prometheus") is None or find_program("promtool") is None,
    reason="there is no Prometheus: `make prometheus` says why it cannot be fetched",
)


def require_program(name: str) -> str:
    """Return the path of a program. Requires `needs_prometheus`."""
    found = find_program(name)
    assert found is not None, f"there is no {name}"
    return found


def fetch_package() -> str:
    """Unpack Debian's package into the virtual environment; return why that is impossible."""
    missing = [name for name in ("apt-get", "dpkg-deb") if shutil.which(name) is None]
    if missing:
        return f"{' and '.join(missing)} are missing: install Prometheus by hand"
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory)
        try:
            if _run(["apt-get", "download", PACKAGE], work):
                options = _own_lists(work)
                _require(["apt-get", *options, "update"], work)
                _require(["apt-get", *options, "download", PACKAGE], work)
            [package] = work.glob(f"{PACKAGE}_*.deb")
            _require(["dpkg-deb", "--extract", str(package), str(DIRECTORY)], work)
        except (OSError, subprocess.SubprocessError, RuntimeError, ValueError) as error:
            return f"the package {PACKAGE} cannot be fetched: {error}"
    return ""


def _own_lists(work: Path) -> list[str]:
    """Options for apt with lists of its own: those of the system are missing, or old."""
    lists, cache = work / "lists", work / "cache"
    for directory in (lists, cache):
        (directory / "partial").mkdir(parents=True)
    values = {
        "Dir::State::Lists": str(lists),
        "Dir::Cache": str(cache),
        "Debug::NoLocking": "true",
        "APT::Sandbox::User": "",
    }
    return [part for key, value in values.items() for part in ("-o", f"{key}={value}")]


def _run(command: list[str], directory: Path) -> str:
    """Run a command; return its last line if it failed, else an empty text."""
    done = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, timeout=_APT_TIMEOUT_S, check=False
    )
    if done.returncode == 0:
        return ""
    return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]


def _require(command: list[str], directory: Path) -> None:
    problem = _run(command, directory)
    if problem:
        raise RuntimeError(problem)


def main() -> None:
    """Fetch Prometheus unless it is there; say what happened."""
    if find_program(PACKAGE) and find_program("promtool"):
        return
    sys.stdout.write(f"No Prometheus on PATH: unpacking Debian's package into {DIRECTORY}.\n")
    problem = fetch_package()
    if problem:
        sys.stdout.write(f"The tests that need Prometheus are skipped: {problem}.\n")


if __name__ == "__main__":
    main()

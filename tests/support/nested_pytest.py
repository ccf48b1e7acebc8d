"""Runs pytest in a process of its own on tests that are given as text."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 200
NO_OTHER_PLUGINS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""Plugins of installed packages take longer to import than the tests take."""


def run_nested_pytest(
    directory: Path, source: str, ini: str, *options: str
) -> subprocess.CompletedProcess[str]:
    """Run the tests of `source` with the settings of `ini`."""
    (directory / "test_it.py").write_text(source)
    (directory / "pytest.ini").write_text(f"[pytest]\n{ini}\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "xdist.plugin"]
    return subprocess.run(
        [*command, *options, str(directory)],
        env={**os.environ, **NO_OTHER_PLUGINS},
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=TIMEOUT_S,
        check=False,
    )

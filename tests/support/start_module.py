"""A module that Python imports at the start of every process of the programs that a test starts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
START_MODULE = "sitecustomize.py"
"""Python imports it at the start of every process."""


def start_module_environment(
    directory: Path, module: str, function: str, variables: Mapping[str, str]
) -> Mapping[str, str]:
    """Return an environment in which every Python process calls a function of the tests first.

    `directory` gets the module for it. Child processes inherit the environment.
    """
    directory.mkdir(parents=True, exist_ok=True)
    (directory / START_MODULE).write_text(
        f"from {module} import {function}\n\n{function}()\n", "utf-8"
    )
    path = [str(directory), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        **variables,
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
    }

"""The Python interpreter of the executors, linked into the driver's directory."""

from __future__ import annotations

from pathlib import Path


def link_executor_python(python: str, directory: Path, prefix: Path) -> None:
    """Make a relative interpreter path (`./archive/bin/python`) work in `directory`, too.

    Executors unpack an archive in their working directory. Spark's planner runs the same relative
    path on the driver; there the link points to `prefix`, the driver's own Python environment.
    """
    parts = Path(python).parts
    if len(parts) > 1 and not Path(python).is_absolute() and not (directory / parts[0]).exists():
        (directory / parts[0]).symlink_to(prefix)

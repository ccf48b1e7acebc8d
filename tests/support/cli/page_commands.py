"""Commands and programs of a documentation page, as they stand there."""

from __future__ import annotations

import re
import sys
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"
_BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def shell_blocks(page: str) -> list[str]:
    """Return the blocks of shell commands of a page, in order."""
    return _blocks(page, "sh")


def python_blocks(page: str) -> list[str]:
    """Return the Python programs of a page, in order."""
    return _blocks(page, "python")


def _blocks(page: str, language: str) -> list[str]:
    found = _BLOCK.findall((DOCS / page).read_text("utf-8"))
    return [text for name, text in found if name == language]


def program_directory(directory: Path) -> Path:
    """Return a directory with the commands `sparkmirror` and `python` of this test run."""
    programs = directory / "bin"
    programs.mkdir()
    for name, arguments in (("sparkmirror", "-m sparkmirror"), ("python", "")):
        file = programs / name
        file.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        file.chmod(0o755)
    return programs

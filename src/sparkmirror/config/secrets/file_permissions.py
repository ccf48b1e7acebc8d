"""Files with secrets that other users of the computer may read."""

from __future__ import annotations

import stat
from pathlib import Path

_OTHERS_READ = stat.S_IRGRP | stat.S_IROTH


def exposure_of(file: Path) -> str:
    """Return a sentence about a file that others may read; empty if it is private or missing."""
    try:
        found = file.stat()
    except (OSError, ValueError):
        return ""
    if not stat.S_ISREG(found.st_mode) or not found.st_mode & _OTHERS_READ:
        return ""
    who = "every user" if found.st_mode & stat.S_IROTH else "its group"
    return f"{file} holds a secret, and {who} may read it: chmod 600 {file}"

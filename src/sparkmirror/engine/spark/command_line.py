"""The command line of this process, as `ps` shows it. Linux only; elsewhere it stays."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

_SELF = Path("/proc/self")
_ARGUMENTS_START, _ARGUMENTS_END = 45, 46
"""Fields of /proc/self/stat, counted from the state of the process."""


def show_command_line(words: Sequence[str]) -> None:
    """Have `ps` show these words, as far as the command line that the process has leaves room."""
    with contextlib.suppress(OSError, IndexError):
        fields = (_SELF / "stat").read_text("utf-8", errors="replace").rpartition(")")[2].split()
        start, end = int(fields[_ARGUMENTS_START]), int(fields[_ARGUMENTS_END])
        with (_SELF / "mem").open("r+b", buffering=0) as memory:
            memory.seek(start)
            memory.write(fitted_words(words, end - start))


def fitted_words(words: Sequence[str], size: int) -> bytes:
    """Return the words as the system stores them, in exactly `size` bytes."""
    return "\0".join(words).encode()[: size - 1].ljust(size, b"\0")

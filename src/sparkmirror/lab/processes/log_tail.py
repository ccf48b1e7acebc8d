"""Reads the end of a log file, and the lines added later."""

from __future__ import annotations

from pathlib import Path

_BLOCK_BYTES = 64 * 1024


class LogTail:
    """One file, read from its last lines on. A missing file counts as empty."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0
        self._partial_line = b""

    def last_lines(self, count: int) -> list[str]:
        """Return the last lines; `new_lines` returns later ones."""
        try:
            with self._path.open("rb") as file:
                self._position = position = file.seek(0, 2)
                content = b""
                while position and content.count(b"\n") <= count:
                    step = min(_BLOCK_BYTES, position)
                    position -= step
                    file.seek(position)
                    content = file.read(step) + content
        except FileNotFoundError:
            return []
        whole, newline, self._partial_line = content.rpartition(b"\n")
        lines = (whole + newline).decode(errors="replace").splitlines()
        return lines[-count:] if count else []

    def new_lines(self) -> list[str]:
        """Return the lines completed since the last call."""
        try:
            with self._path.open("rb") as file:
                if file.seek(0, 2) < self._position:  # the file was truncated
                    self._position, self._partial_line = 0, b""
                file.seek(self._position)
                appended = file.read()
        except FileNotFoundError:
            return []
        self._position += len(appended)
        *lines, self._partial_line = (self._partial_line + appended).split(b"\n")
        return [line.decode(errors="replace") for line in lines]

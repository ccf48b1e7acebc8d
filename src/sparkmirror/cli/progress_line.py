"""What is going on, for people who wait: a moving line on a terminal, plain lines elsewhere.

Everything goes to standard error, so that a command's answer on standard output stays clean.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import rich.console
import rich.status
import rich.text

from sparkmirror.lab.kafka.ivy import DownloadProgress

_MEGABYTE = 1024 * 1024


class ProgressLine:
    """Says what is going on. On a terminal each word replaces the one before."""

    def __init__(self, console: rich.console.Console, status: rich.status.Status | None) -> None:
        self._console = console
        self._status = status
        self._stage = ""

    def show(self, text: str) -> None:
        """Tell what happens now."""
        if self._status is not None:
            self._status.update(rich.text.Text(text))
        else:
            self._console.print(text)

    def on_download(self, progress: DownloadProgress) -> None:
        """Tell how far a download is; where lines stay, only when its stage changes."""
        if self._status is None and progress.stage == self._stage:
            return
        self._stage = progress.stage
        self.show(download_text(progress))


@contextmanager
def progress_line() -> Iterator[ProgressLine]:
    """Show what is said inside the block."""
    console = rich.console.Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    if not console.is_terminal:
        yield ProgressLine(console, None)
        return
    with console.status("") as status:
        yield ProgressLine(console, status)


def download_text(progress: DownloadProgress) -> str:
    """Put the state of a download into words."""
    counted = f"{progress.done}/{progress.total} jars" if progress.total else ""
    size = f"{progress.size_bytes / _MEGABYTE:.1f} MB" if progress.size_bytes else ""
    details = ", ".join(part for part in (counted, size, progress.file) if part)
    return f"Kafka's jars: {progress.stage}" + (f" ({details})" if details else "")

"""Shows progress: one changing line on a terminal, plain lines elsewhere.

Writes to standard error, so that standard output has only the command's answer.
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
    """Shows the current step. On a terminal each text replaces the one before."""

    def __init__(self, console: rich.console.Console, status: rich.status.Status | None) -> None:
        self._console = console
        self._status = status
        self._stage = ""

    def show(self, text: str) -> None:
        """Show the current step."""
        if self._status is not None:
            self._status.update(rich.text.Text(text))
        else:
            self._console.print(text)

    def on_download(self, progress: DownloadProgress) -> None:
        """Show the progress of a download; without a terminal only when its stage changes."""
        if self._status is None and progress.stage == self._stage:
            return
        self._stage = progress.stage
        self.show(download_text(progress))


@contextmanager
def progress_line() -> Iterator[ProgressLine]:
    """Yield a progress line that ends with the block."""
    console = rich.console.Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    if not console.is_terminal:
        yield ProgressLine(console, None)
        return
    with console.status("") as status:
        yield ProgressLine(console, status)


def download_text(progress: DownloadProgress) -> str:
    """Return the state of a download as text."""
    counted = f"{progress.done}/{progress.total} jars" if progress.total else ""
    size = f"{progress.size_bytes / _MEGABYTE:.1f} MB" if progress.size_bytes else ""
    details = ", ".join(part for part in (counted, size, progress.file) if part)
    return f"Kafka's jars: {progress.stage}" + (f" ({details})" if details else "")

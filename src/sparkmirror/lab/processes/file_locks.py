"""A lock on a file that names its holder.

The lock belongs to the open file. The system releases it when the holder dies; a child that
inherits the file holds the lock until it ends too.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sparkmirror.errors import LabError


@contextmanager
def locked(path: Path, waiting: Callable[[str], None]) -> Iterator[int]:
    """Hold the lock inside the block; yields its file descriptor.

    If another process holds it, calls `waiting` once with that process, then blocks.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise LabError(
            f"{path.parent} cannot be used ({error.strerror}): make it writable, or name other"
            " directories with SPARKMIRROR_CACHE and SPARKMIRROR_LABS"
        ) from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting(f"process {os.pread(lock, 20, 0).decode().strip() or '?'}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        os.truncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        yield lock
    finally:
        os.close(lock)

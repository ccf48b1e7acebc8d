"""A client id that a restarted process shares with the process before it.

The state directory holds one file for each group, with a random id. The running process locks the
file, and the system unlocks it when the process ends, however it ends. A process that gets the lock
knows that the one before it is dead. A process that does not get it uses an id of its own.
"""

from __future__ import annotations

import fcntl
import logging
import os
import uuid
from pathlib import Path
from urllib.parse import quote

log = logging.getLogger(__name__)


class PersistentClientId:
    """The id of this process for one group. Keeps the lock until the process ends."""

    def __init__(self, directory: Path, group_id: str) -> None:
        self._file: int | None = None
        self.value = f"sparkmirror-{group_id}-{self._claim(directory, group_id)}"

    def _claim(self, directory: Path, group_id: str) -> str:
        new = uuid.uuid4().hex[:12]
        try:
            directory.mkdir(parents=True, exist_ok=True)
            path = directory / f"{quote(group_id, safe='')}.id"
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            log.info("Group %s: this process has an id of its own: %s", group_id, error)
            return new
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            return new
        self._file = file
        known = os.pread(file, 64, 0).decode("ascii", "replace").strip()
        if known:
            return known
        os.pwrite(file, new.encode(), 0)
        return new

    def close(self) -> None:
        """Unlock the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

"""Stores the labs that keep running after the command that started them.

    <labs>/<name>/lab.json          the descriptions of its clusters; readable by the owner only
    <labs>/<name>/<cluster>/        all files of one cluster
    <labs>/.lock-<name>             held while a command changes the lab

The file names the boot of the computer. After a reboot no process of the lab exists. This module
reads and writes files only; `lab.cluster` gives the descriptions their meaning.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sparkmirror.directories import state_directory
from sparkmirror.errors import BadRequest, LabError
from sparkmirror.lab.processes.file_locks import locked

DEFAULT_LAB = "default"
_FILE = "lab.json"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,40}")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def labs_directory(environ: Mapping[str, str] | None = None) -> Path:
    """Return the directory of all labs: SPARKMIRROR_LABS, else in the user's state directory."""
    environ = os.environ if environ is None else environ
    if environ.get("SPARKMIRROR_LABS"):
        return Path(environ["SPARKMIRROR_LABS"]).expanduser().absolute()
    return state_directory(environ) / "labs"


def current_boot_id() -> str:
    """Return the kernel's id of the current boot; "" if the system has none."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabRecord:
    """The stored form of one lab. Its cluster descriptions hold passwords."""

    name: str
    clusters: tuple[Mapping[str, Any], ...] = field(repr=False)
    boot_id: str = field(default_factory=current_boot_id)

    def is_from_previous_boot(self) -> bool:
        """Return whether the computer was rebooted since, so that no process of the lab exists."""
        now = current_boot_id()
        return bool(self.boot_id and now) and self.boot_id != now


class LabStore:
    """The labs of one user of this computer."""

    def __init__(self, root: Path | None = None) -> None:
        self._root = root or labs_directory()

    def directory(self, name: str) -> Path:
        """Return the directory of a lab, which may not exist. Raises BadRequest for a bad name."""
        if not _NAME.fullmatch(name):
            raise BadRequest(f"{name!r} is no name for a lab: use letters, digits, '-' and '_'.")
        return self._root / name

    def read(self, name: str) -> LabRecord | None:
        """Return the stored lab; None if there is none. Raises LabError for a corrupt file."""
        file = self.directory(name) / _FILE
        try:
            stored = json.loads(file.read_text(encoding="utf-8"))
            return LabRecord(name=name, clusters=tuple(stored["clusters"]), boot_id=stored["boot"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise LabError(
                f"{file} makes no sense ({error}): end what still runs there, then remove"
                f" {file.parent}."
            ) from error

    def write(self, record: LabRecord) -> None:
        """Store a lab by one rename, in a file that only its owner can read."""
        directory = self.directory(record.name)
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        new_file = directory / f".{_FILE}"
        handle = os.open(new_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"boot": record.boot_id, "clusters": list(record.clusters)}, file, indent=1)
        new_file.rename(directory / _FILE)

    def remove(self, name: str) -> None:
        """Remove all files of a lab."""
        shutil.rmtree(self.directory(name), ignore_errors=True)

    def names(self) -> list[str]:
        """Return the names of the stored labs, sorted."""
        return sorted(file.parent.name for file in self._root.glob(f"*/{_FILE}"))

    @contextmanager
    def lock(self, name: str, waiting: Callable[[str], None]) -> Iterator[None]:
        """Hold the lock of a lab for the block. Blocks while another process holds it.

        Calls `waiting` with the current holder before it blocks.
        """
        with locked(self.directory(name).with_name(f".lock-{name}"), waiting):
            yield

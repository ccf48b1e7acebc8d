"""Where labs that outlive their command are written down.

    <labs>/<name>/lab.json          which clusters it has, as each described itself; private
    <labs>/<name>/<cluster>/        all files of one cluster
    <labs>/.lock-<name>             held while a command changes the lab

A lab whose file was written before the computer last started has no processes any more. Knows
files only: what a description means is the cluster's business.
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
    """Return where labs live: SPARKMIRROR_LABS, else the user's state directory."""
    environ = os.environ if environ is None else environ
    if environ.get("SPARKMIRROR_LABS"):
        return Path(environ["SPARKMIRROR_LABS"]).expanduser().absolute()
    return state_directory(environ) / "labs"


def current_boot_id() -> str:
    """Name the time since the computer was started; "" where the system does not tell."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabRecord:
    """One lab, written down. Descriptions hold passwords."""

    name: str
    clusters: tuple[Mapping[str, Any], ...] = field(repr=False)
    boot_id: str = field(default_factory=current_boot_id)

    def is_from_previous_boot(self) -> bool:
        """Tell whether the computer was restarted since, so that nothing of it can run."""
        now = current_boot_id()
        return bool(self.boot_id and now) and self.boot_id != now


class LabStore:
    """The labs of one user of this computer."""

    def __init__(self, root: Path | None = None) -> None:
        self._root = root or labs_directory()

    def directory(self, name: str) -> Path:
        """Return the directory of a lab, which need not exist."""
        if not _NAME.fullmatch(name):
            raise BadRequest(f"{name!r} is no name for a lab: use letters, digits, '-' and '_'.")
        return self._root / name

    def read(self, name: str) -> LabRecord | None:
        """Return what is written about a lab; None if there is none."""
        file = self.directory(name) / _FILE
        try:
            plain = json.loads(file.read_text(encoding="utf-8"))
            return LabRecord(name=name, clusters=tuple(plain["clusters"]), boot_id=plain["boot"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise LabError(
                f"{file} makes no sense ({error}): end what still runs there, then remove"
                f" {file.parent}."
            ) from error

    def write(self, record: LabRecord) -> None:
        """Write a lab down, all at once and for its owner's eyes only."""
        directory = self.directory(record.name)
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = directory / f".{_FILE}"
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"boot": record.boot_id, "clusters": list(record.clusters)}, file, indent=1)
        fresh.rename(directory / _FILE)

    def remove(self, name: str) -> None:
        """Forget a lab and remove all its files."""
        shutil.rmtree(self.directory(name), ignore_errors=True)

    def names(self) -> list[str]:
        """Name the labs that are written down."""
        return sorted(file.parent.name for file in self._root.glob(f"*/{_FILE}"))

    @contextmanager
    def lock(self, name: str, waiting: Callable[[str], None]) -> Iterator[None]:
        """Let nobody else change a lab inside the block; `waiting` hears who does just now."""
        with locked(self.directory(name).with_name(f".lock-{name}"), waiting):
            yield

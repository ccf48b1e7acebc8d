"""Which file the worker or mirror of this container runs: the command lines of its processes.

The entry point, a given command or a shell script may have started it, and the root file system may
be read-only, so that the start leaves no trace but the process itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

PROCESSES: Final = Path("/proc")
_SCRIPTS: Final = frozenset(
    f"{name}{ending}"
    for name in ("connect-distributed", "connect-mirror-maker")
    for ending in ("", ".sh")
)
_PROGRAM: Final = "sparkmirror"
_COMMANDS: Final = ("worker", "run")
_OPTIONS_WITH_VALUE: Final = ("--clusters", "--log-format")


def process_properties_file(processes: Path = PROCESSES) -> Path | None:
    """Return the file of the worker or mirror that was started first; None if none runs.

    Only processes of this user, or all of them for root, can be read in full.
    """
    numbered = (entry for entry in processes.iterdir() if entry.name.isdecimal())
    for process in sorted(numbered, key=lambda entry: int(entry.name)):
        try:
            words = (process / "cmdline").read_bytes().decode("utf-8", "surrogateescape")
            file = file_of_command(words.rstrip("\0").split("\0"))
            if file is not None:
                return (process / "cwd").readlink() / file
        except OSError:
            continue  # the process has ended, or belongs to another user
    return None


def file_of_command(words: Sequence[str]) -> str | None:
    """Return the properties file of a command line; None if it runs neither worker nor mirror.

    An interpreter begins the command line: `python /opt/kafka/bin/connect-distributed.sh FILE`.
    """
    if len(words) < 2 or not Path(words[0]).name.startswith("python"):
        return None
    script, arguments = Path(words[1]).name, list(words[2:])
    if script == _PROGRAM and arguments and arguments[0] in _COMMANDS:
        return _first_argument(arguments[1:])
    return _first_argument(arguments) if script in _SCRIPTS else None


def _first_argument(words: Sequence[str]) -> str | None:
    """Return the first word that is neither an option nor the value of one."""
    is_value = False
    for word in words:
        if not is_value and not word.startswith("-"):
            return word
        is_value = word in _OPTIONS_WITH_VALUE
    return None

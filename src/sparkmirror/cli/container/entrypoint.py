"""The entry point of the image: decides what runs in the container and becomes it.

1. Arguments are a command, which runs. Of the `CONNECT_*` variables only log levels count then.
2. Without arguments, `CONNECT_*` variables make a Connect worker: their properties are written to
   `/etc/kafka-connect/kafka-connect.properties`, the last word of the worker's command line.
3. Without those, `./config/mm2-config.properties` in the work directory runs all its flows.
4. Otherwise the usage is printed.

The command replaces this process, so signals reach it.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NoReturn

from sparkmirror.cli.container.connect_environment import ConnectEnvironment, worker_properties_text
from sparkmirror.logging_context import LEVELS_VARIABLE

WORKER_FILE: Final = Path("/etc/kafka-connect/kafka-connect.properties")
MIRROR_FILE: Final = Path("config/mm2-config.properties")
USAGE: Final = """\
Nothing to start. Give the container one of these:

  a command       docker run … sparkmirror connect-mirror-maker.sh /path/of/mm2.properties
                  docker run … sparkmirror connect-distributed.sh /path/of/worker.properties
  variables       docker run -e CONNECT_BOOTSTRAP_SERVERS=… -e CONNECT_GROUP_ID=… … sparkmirror
                  a Connect worker; CONNECT_REST_PORT=8083 becomes rest.port=8083
  a mounted file  docker run -v "$PWD/config:/app/replicator/config:ro" … sparkmirror
                  the flows of config/mm2-config.properties
"""
EXIT_USAGE: Final = 1
EXIT_CANNOT_EXECUTE: Final = 126
EXIT_NOT_FOUND: Final = 127


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerStart:
    """The command of a container, the file it needs, and what its log says first."""

    command: tuple[str, ...]
    worker_properties: str | None = field(default=None, repr=False)
    """The content of the worker's file, if the container has to write it."""
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What the environment of the command has besides that of the container."""
    notes: tuple[str, ...] = ()


class CannotStart(Exception):
    """The container has nothing to start. The text says what is missing."""


def container_start(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    work_directory: Path,
    worker_file: Path = WORKER_FILE,
) -> ContainerStart:
    """Decide what the container runs. Raises CannotStart with the usage or what is missing."""
    found = ConnectEnvironment.of(environment)
    variables = {LEVELS_VARIABLE: found.log_levels} if found.log_levels else {}
    if arguments:
        return ContainerStart(command=tuple(arguments), variables=variables)
    if found.properties:
        if found.missing_variables:
            raise CannotStart(_missing_text(found.missing_variables))
        return ContainerStart(
            command=("connect-distributed.sh", str(worker_file)),
            worker_properties=worker_properties_text(found),
            variables=variables,
            notes=found.notes,
        )
    if (work_directory / MIRROR_FILE).is_file():
        return ContainerStart(
            command=("connect-mirror-maker.sh", f"./{MIRROR_FILE}"),
            variables=variables,
            notes=found.notes,
        )
    raise CannotStart(USAGE)


def write_worker_file(path: Path, text: str) -> None:
    """Write the file for its owner only: it may have passwords. Raises CannotStart if it cannot."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(text)
    except OSError as error:
        raise CannotStart(
            f"{path} cannot be written: {error.strerror}. If the root file system of the container "
            f"is read-only, mount a volume at {path.parent} that uid {os.getuid()} may write to.\n"
        ) from error


def run(start: ContainerStart, worker_file: Path = WORKER_FILE) -> NoReturn:
    """Print the notes, write the worker's file, and replace this process by the command."""
    for note in start.notes:
        sys.stderr.write(f"sparkmirror: {note}\n")
    if start.worker_properties is not None:
        write_worker_file(worker_file, start.worker_properties)
    sys.stderr.flush()
    program = shutil.which(start.command[0])
    if program is None:
        sys.stderr.write(f"{start.command[0]}: the image has no such command.\n")
        sys.exit(EXIT_NOT_FOUND)
    try:
        os.execve(program, start.command, {**os.environ, **start.variables})  # noqa: S606 - the container is there to run it
    except OSError as error:
        sys.stderr.write(f"{program} cannot be executed: {error.strerror}.\n")
        sys.exit(EXIT_CANNOT_EXECUTE)


def main() -> NoReturn:
    """Start what the container is for, and exit with 1 if there is nothing."""
    try:
        run(container_start(sys.argv[1:], os.environ, Path.cwd()))
    except CannotStart as error:
        sys.stderr.write(str(error))
        sys.exit(EXIT_USAGE)


def _missing_text(variables: Sequence[str]) -> str:
    listed = "".join(f"  {name}\n" for name in variables)
    return f"A Connect worker needs these variables, which are not set:\n{listed}"


if __name__ == "__main__":
    main()

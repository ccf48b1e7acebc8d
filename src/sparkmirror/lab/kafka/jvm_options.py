"""The JVM options of Kafka's Java programs: heap, fast start, class path, logging.

Every program logs to standard error at the given level, so that standard output holds only the
output of the program itself.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from sparkmirror.lab.kafka.kafka_version import is_before

FAST_START_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""They limit the JIT compiler and the garbage collector to what starts soonest."""
_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class JvmOptions:
    """The options of one JVM.

    `fast_start` limits the JIT compiler: use it for short programs, not for benchmarks.
    `extra_options` come last and override the others.
    """

    heap_mb: int = 256
    log_level: str = "WARN"
    fast_start: bool = True
    extra_options: tuple[str, ...] = ()

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Self:
        """Return the options of KAFKA_HEAP_OPTS and KAFKA_OPTS, as Kafka's own scripts use them."""
        variables = (environ.get("KAFKA_HEAP_OPTS", ""), environ.get("KAFKA_OPTS", ""))
        return cls(extra_options=tuple(opt for value in variables for opt in shlex.split(value)))

    def command(
        self, java: Path, jars: Path, version: str, main: str, archive: tuple[str, ...] = ()
    ) -> list[str]:
        """Return the command that runs a main class; append the program's arguments to it.

        `archive` are the options of a class archive, which only a fast start uses.
        """
        return [
            str(java),
            f"-Xmx{self.heap_mb}m",
            "-Xshare:auto",
            *((*FAST_START_OPTIONS, *archive) if self.fast_start else ()),
            *log4j_options(version, self.log_level),
            *self.extra_options,
            *("-cp", str(jars / "*"), main),
        ]


def server_options(version: str, directory: Path) -> list[str]:
    """Return the options of a server that writes files only into its directory, and logs."""
    return [
        "-XX:-UsePerfData",
        "-XX:+ExitOnOutOfMemoryError",
        f"-XX:ErrorFile={directory / 'crash.log'}",
        f"-Djava.io.tmpdir={directory / 'tmp'}",
        "-Djava.awt.headless=true",
        *log4j_options(version, "INFO"),
    ]


def log4j_options(version: str, level: str) -> list[str]:
    """Return the options that log to standard error, from `level` up."""
    if is_before(version, 4):
        configuration = f"-Dlog4j.configuration=file:{_HERE / 'log4j-lab.properties'}"
    else:
        configuration = f"-Dlog4j2.configurationFile={_HERE / 'log4j2-lab.properties'}"
    return [configuration, f"-Dlab.log.level={level}"]

"""How a Java program of Kafka's is started here: heap, quick start, class path, logging.

Every program logs to standard error at the level asked for, so that standard output carries only
what the program itself prints, and a long-running program's log is wherever its standard error
goes. Knows nothing about which program it is.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from sparkmirror.lab.kafka.jar_cache import is_before_4

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class JvmOptions:
    """One way to start Java.

    `quick` compiles lightly: right for a program that lives for seconds, wrong for a benchmark.
    `extra` are words for Java itself; they come last and win.
    """

    heap_mb: int = 256
    log_level: str = "WARN"
    fast_start: bool = True
    extra_options: tuple[str, ...] = ()

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Self:
        """Heed the variables that people set for Kafka's own scripts."""
        said = (environ.get("KAFKA_HEAP_OPTS", ""), environ.get("KAFKA_OPTS", ""))
        return cls(extra_options=tuple(word for words in said for word in shlex.split(words)))

    def command(self, java: Path, jars: Path, version: str, main: str) -> list[str]:
        """Return the command that runs a main class; the program's arguments come after it."""
        return [
            str(java),
            f"-Xmx{self.heap_mb}m",
            "-Xshare:auto",
            *(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"] if self.fast_start else []),
            *log4j_options(version, self.log_level),
            *self.extra_options,
            *("-cp", str(jars / "*"), main),
        ]


def log4j_options(version: str, level: str) -> list[str]:
    """Say in the logging library's words: every line to standard error, from `level` up."""
    if is_before_4(version):
        chosen = f"-Dlog4j.configuration=file:{_HERE / 'log4j-lab.properties'}"
    else:
        chosen = f"-Dlog4j2.configurationFile={_HERE / 'log4j2-lab.properties'}"
    return [chosen, f"-Dlab.log.level={level}"]

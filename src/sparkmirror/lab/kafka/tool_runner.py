"""Runs Kafka's command-line tools out of the cached jars.

`become` is for people at a terminal; `check` is for callers that want the tool's answer.
The tool's log lines (warnings and worse) go to standard error, so standard output is clean.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from sparkmirror.errors import LabError
from sparkmirror.java.java_runtime import JavaRuntime, find_java
from sparkmirror.lab.kafka.jar_cache import DEFAULT_VERSION, JarCache
from sparkmirror.lab.kafka.jvm_options import JvmOptions
from sparkmirror.lab.kafka.kafka_tools import KafkaTool, find_tool

_RUN_TIMEOUT_S = 60


class KafkaToolRunner:
    """The tools of one Kafka version."""

    def __init__(
        self,
        version: str = DEFAULT_VERSION,
        jars: JarCache | None = None,
        java: JavaRuntime | None = None,
        jvm: JvmOptions | None = None,
    ) -> None:
        self.version = version
        self._jars = jars or JarCache()
        self._java = java
        self._jvm = jvm or JvmOptions()

    def command(self, name: str, arguments: Sequence[str]) -> list[str]:
        """Return the whole command line that runs a tool."""
        tool = find_tool(name)
        directory = self._jars.ensure(self.version)
        main = find_main_class(tool, directory, self.version)
        self._java = self._java or find_java()
        return [*self._jvm.command(self._java.path, directory, self.version, main), *arguments]

    def exec_tool(self, name: str, arguments: Sequence[str]) -> NoReturn:
        """Turn this very process into the tool: its streams, signals and exit code are ours.

        So a console consumer under `timeout`, Ctrl-C or a closed pipe ends as Kafka's own does,
        and nothing is left behind.
        """
        command = self.command(name, arguments)
        sys.stdout.flush()
        sys.stderr.flush()
        os.execv(command[0], command)  # noqa: S606 - no shell, and nothing of ours goes on

    def run(
        self,
        name: str,
        arguments: Sequence[str],
        text: str = "",
        timeout_s: float = _RUN_TIMEOUT_S,
    ) -> str:
        """Run a tool with `text` as its input and return what it printed; it must succeed."""
        try:
            done = subprocess.run(
                self.command(name, arguments),
                input=text,
                capture_output=True,
                text=True,
                timeout=timeout_s,
            )
        except subprocess.TimeoutExpired as expired:
            said = shlex.join([name, *arguments])
            raise LabError(f"{said} did not end within {timeout_s:g} s.") from expired
        if done.returncode != 0:
            said = shlex.join([name, *arguments])
            words = (done.stderr.strip() or done.stdout.strip())[-2000:]
            raise LabError(f"{said} ended with exit code {done.returncode}: {words}")
        return done.stdout


def find_main_class(tool: KafkaTool, directory: Path, version: str) -> str:
    """Return the main class under which a version's jars hold the tool."""
    held = _class_files(directory, version)
    for main in tool.main_classes:
        if f"{main.replace('.', '/')}.class" in held:
            return main
    raise LabError(f"Kafka {version} has no {tool.name}: choose another version with --version.")


def _class_files(directory: Path, version: str) -> set[str]:
    """Name the files in the jars that hold programs: Kafka's own of that version."""
    held: set[str] = set()
    for jar in directory.glob(f"*-{version}.jar"):
        with zipfile.ZipFile(jar) as opened:
            held.update(opened.namelist())
    return held

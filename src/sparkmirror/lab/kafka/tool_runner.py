"""Runs Kafka's command-line tools from the cached jars.

`exec_tool` is for commands at a terminal; `run` is for callers that need the tool's output.
The tool logs warnings and errors to standard error, so standard output holds only its answer.
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

from sparkmirror.directories import cache_directory
from sparkmirror.errors import LabError
from sparkmirror.java.java_runtime import JavaRuntime, find_java
from sparkmirror.lab.kafka.class_archive import archive_file, archive_options
from sparkmirror.lab.kafka.jar_cache import DEFAULT_VERSION, JarCache
from sparkmirror.lab.kafka.jvm_options import JvmOptions
from sparkmirror.lab.kafka.kafka_tool_table import KafkaTool, find_tool

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
        """Return the command line that runs a tool. Downloads the jars if they are missing."""
        tool = find_tool(name)
        directory = self._jars.ensure(self.version)
        main = find_main_class(tool, directory, self.version)
        java = self._java = self._java or find_java()
        archive = archive_file(cache_directory(os.environ), self.version, java, directory)
        options = archive_options(archive)
        return [*self._jvm.command(java.path, directory, self.version, main, options), *arguments]

    def exec_tool(self, name: str, arguments: Sequence[str]) -> NoReturn:
        """Replace this process by the tool (execv). Streams, signals and exit code are the tool's.

        So a console consumer under `timeout`, Ctrl-C or a closed pipe ends as with Kafka's script.
        """
        command = self.command(name, arguments)
        sys.stdout.flush()
        sys.stderr.flush()
        os.execv(command[0], command)  # noqa: S606 - no shell

    def run(
        self,
        name: str,
        arguments: Sequence[str],
        text: str = "",
        timeout_s: float = _RUN_TIMEOUT_S,
    ) -> str:
        """Run a tool with `text` as its input and return its standard output.

        Blocks. Raises LabError if the tool fails or the time is over.
        """
        command_line = shlex.join([name, *arguments])
        try:
            done = subprocess.run(
                self.command(name, arguments),
                input=text,
                capture_output=True,
                text=True,
                timeout=timeout_s,
            )
        except subprocess.TimeoutExpired as expired:
            raise LabError(f"{command_line} did not end within {timeout_s:g} s.") from expired
        if done.returncode != 0:
            output = (done.stderr.strip() or done.stdout.strip())[-2000:]
            raise LabError(f"{command_line} ended with exit code {done.returncode}: {output}")
        return done.stdout


def find_main_class(tool: KafkaTool, directory: Path, version: str) -> str:
    """Return the first main class of the tool that a version's jars hold. Raises LabError."""
    class_files = _class_files(directory, version)
    for main in tool.main_classes:
        if f"{main.replace('.', '/')}.class" in class_files:
            return main
    raise LabError(f"Kafka {version} has no {tool.name}: choose another version with --version.")


def _class_files(directory: Path, version: str) -> set[str]:
    """Return the names of all files in Kafka's own jars of a version."""
    names: set[str] = set()
    for jar in directory.glob(f"*-{version}.jar"):
        with zipfile.ZipFile(jar) as archive:
            names.update(archive.namelist())
    return names

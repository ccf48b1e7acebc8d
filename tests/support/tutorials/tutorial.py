"""A tutorial: a copy of its files, and a shell into which its commands are typed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sparkmirror.lab.kafka.tool_runner import KafkaToolRunner

TUTORIALS = Path(__file__).parents[2] / "tutorials"
COMMANDS = "commands.txt"
COMMAND_TIMEOUT_S = 300.0
KAFKA_TOOLS = ("kafka-topics", "kafka-console-producer", "kafka-console-consumer")


class Tutorial:
    """Runs the commands of `tests/tutorials/<number>/commands.txt`, none left out.

    `words` maps words of the tutorial to those of the test, in its files and its commands: hosts,
    directories, logins. Ports of `curl` are mapped by its own configuration file, so scripts that
    call it stay as they are.
    """

    def __init__(
        self,
        number: str,
        directory: Path,
        words: Mapping[str, str],
        ports: Mapping[int, int] | None = None,
    ) -> None:
        """Copy the files to `directory`. `ports` are ports of localhost and what they stand for."""
        self.directory = directory
        self._words = dict(words)
        self.commands_left = (TUTORIALS / number / COMMANDS).read_text("utf-8").splitlines()
        """The commands that have not been typed."""
        bytecode = shutil.ignore_patterns("__pycache__")
        shutil.copytree(TUTORIALS / number, directory, ignore=bytecode, dirs_exist_ok=True)
        for file in directory.rglob("*"):
            if file.is_file():
                file.write_text(self.with_words_of_test(file.read_text("utf-8")), "utf-8")
        self.programs = directory / "bin"
        self.programs.mkdir(exist_ok=True)
        self.shell_state = directory / ".shell"
        """The exported variables; another shell may source it."""
        self.shell_state.touch()
        self.environment = {
            **os.environ,
            "PATH": os.pathsep.join(
                [str(self.programs), str(Path(sys.executable).parent), os.environ["PATH"]]
            ),
            "CURL_HOME": str(directory),
        }
        lines = [
            f'connect-to = "localhost:{port}:127.0.0.1:{actual}"\n'
            for port, actual in (ports or {}).items()
        ]
        (directory / ".curlrc").write_text("".join(lines), "ascii")

    def with_words_of_test(self, text: str) -> str:
        """Replace the words of the tutorial, longer ones first."""
        longest_first = sorted(self._words, key=len, reverse=True)
        pattern = "|".join(map(re.escape, longest_first))
        return re.sub(pattern, lambda found: self._words[found[0]], text)

    def install(self, program: str) -> None:
        """Let the shell find a program of the directory `own` by its name."""
        (self.programs / program).symlink_to(self.directory / "own" / program)

    def take(self, beginning: str) -> str:
        """Return the next command that begins like this, with the words of the test."""
        command = next((one for one in self.commands_left if one.startswith(beginning)), None)
        assert command, f"no command begins with {beginning!r}: {self.commands_left}"
        self.commands_left.remove(command)
        return self.with_words_of_test(command)

    def run(self, beginning: str, *, text: str = "") -> str:
        """Type the next command; returns its output. It must succeed."""
        return self.enter(self.take(beginning), text=text)

    def run_json(self, beginning: str) -> Any:
        """Type the next command; returns the JSON that it prints."""
        return json.loads(self.run(beginning))

    def enter(self, command: str, *, text: str = "", status: int = 0) -> str:
        """Type a command; returns its output. `cd` and `export` have effect on later commands."""
        before = '. "$1"; cd "${TUTORIAL_DIRECTORY:-.}"'
        after = 'status=$?; export TUTORIAL_DIRECTORY="$PWD"; export -p > "$1"; exit $status'
        script = f"{before}\n{command}\n{after}"
        done = subprocess.run(
            ["bash", "-c", script, "bash", str(self.shell_state)],
            cwd=self.directory,
            env=self.environment,
            input=text,
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )
        assert done.returncode == status, f"{command}: {done.returncode} {done.stderr[-3000:]}"
        return done.stdout


def write_kafka_tools(directory: Path) -> None:
    """Write Kafka's own command-line tools, with the names of both Apache's and Confluent's."""
    directory.mkdir(parents=True, exist_ok=True)
    runner = KafkaToolRunner()
    for tool in KAFKA_TOOLS:
        words = " ".join(f"'{word}'" for word in runner.command(tool, ()))
        for name in (tool, f"{tool}.sh"):
            file = directory / name
            file.write_text(f'#!/bin/sh\nexec {words} "$@"\n', "utf-8")
            file.chmod(0o755)

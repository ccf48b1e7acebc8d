"""A program in place of `java -jar ivy.jar`: downloads that succeed, hang or fail."""

from __future__ import annotations

import sys
from pathlib import Path

from sparkmirror.java.java_runtime import JavaRuntime

_LAUNCHER = """#!/bin/sh
exec "{python}" -IS "$0.py" "$@"
"""
"""A shell finds a Python whose path has a space; a line of `#!` does not."""
_SCRIPT = """
import os, pathlib, sys, time

arguments = sys.argv[1:]
work = pathlib.Path(arguments[arguments.index("-cache") + 1])
into = pathlib.Path(arguments[arguments.index("-retrieve") + 1]).parent
calls = pathlib.Path({calls!r})
with calls.open("a") as file:
    file.write(f"{{os.getpid()}}\\n")

def say(text, end="\\n"):
    sys.stdout.write(text + end)
    sys.stdout.flush()

def download(name, content):
    say(f"downloading some://where/{{name}} ...")
    kept = work / "kept" / name
    if kept.exists():
        say(f"already here: {{name}}")
    else:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(content)
    say("... (2kB)")
    say(f"\\t[SUCCESSFUL ] x#{{name}} (1ms)")

def retrieve():
    into.mkdir(parents=True, exist_ok=True)
    for kept in sorted((work / "kept").iterdir()):
        (into / kept.name).write_bytes(kept.read_bytes())

{script}
"""

COMPLETE = """
say("\\tfound org#one;1 in public")
say("\\tfound org#two;2 in public")
download("one-1.jar", b"one")
download("two-2.jar", b"two")
retrieve()
"""
"""A download that works: two jars."""

HANGS_AFTER_FIRST_JAR = """
say("\\tfound org#one;1 in public")
download("one-1.jar", b"one")
say("downloading some://where/two-2.jar ...")
say("....", end="")
time.sleep(60)
"""
"""A download that hangs after output."""

HANGS_SILENTLY = "time.sleep(60)"
"""A download that hangs without output, so that a closed pipe does not end it."""

SLOW_DOWNLOAD = """
say("\\tfound org#one;1 in public")
say("downloading some://where/one-1.jar ...")
say("......", end="")
while not calls.with_name("may-go-on").exists():
    time.sleep(0.01)
say("")
download("one-1.jar", b"one")
retrieve()
"""
"""A download with progress: six dots are four times 15 kB. It waits for `let_go_on`."""

NO_NETWORK = """
say("\\tServer access error at url some://where (Connection refused)")
say("\\t\\t:: org.apache.kafka#kafka_2.13;4.3.1: not found")
sys.exit(1)
"""
"""The output of Ivy without a network."""

UNTRUSTED_CERTIFICATE = """
say("\\tServer access error at url https://repo.example/kafka.pom"
    " (javax.net.ssl.SSLHandshakeException: PKIX path building failed: no valid path)")
say("\\t\\t:: org.apache.kafka#kafka_2.13;4.3.1: not found")
sys.exit(1)
"""
"""The output of Ivy if its Java does not trust the certificate of the repository."""

DISK_FULL = """
say("java.io.IOException: No space left on device")
sys.exit(1)
"""
"""The output of Ivy after another failure."""


class FakeIvy:
    """A program that behaves like Java with Ivy and records its calls."""

    def __init__(self, directory: Path, script: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._calls = directory / "calls"
        self._program = directory / "java"
        self.set_script(script)
        self.java = JavaRuntime(path=self._program, version="17")

    def set_script(self, script: str) -> None:
        """Set the script of the next call."""
        text = _SCRIPT.format(calls=str(self._calls), script=script)
        self._program.with_name(f"{self._program.name}.py").write_text(text, encoding="utf-8")
        launcher = _LAUNCHER.format(python=sys.executable)
        self._program.write_text(launcher, encoding="utf-8")
        self._program.chmod(0o755)

    def let_go_on(self) -> None:
        """End the pause of a slow download."""
        self._calls.with_name("may-go-on").touch()

    def calls(self) -> list[int]:
        """Return the process ids of all calls so far."""
        if not self._calls.exists():
            return []
        return [int(line) for line in self._calls.read_text(encoding="utf-8").split()]

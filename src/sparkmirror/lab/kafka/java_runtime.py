"""The Java that runs Kafka: where it is, which version, and one sentence when it will not do.

Knows how to ask a `java` program for its version. Knows nothing about Kafka or its jars.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sparkmirror.errors import JavaMissing

MINIMUM_MAJOR = 17
_ANSWER_TIMEOUT_S = 30
_VERSION = re.compile(r'version "([^"]+)"')
_ADVICE = f"install Java {MINIMUM_MAJOR} or newer and put it on PATH, or point JAVA_HOME at it"


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaRuntime:
    """One usable Java program."""

    path: Path
    version: str

    @property
    def major(self) -> int:
        """The number people mean by "Java 17"; `1.8.0_392` is 8."""
        return java_major_version(self.version)


def java_major_version(version: str) -> int:
    """Return the feature release of a version string, 0 if it holds no number."""
    numbers = [int(number) for number in re.findall(r"\d+", version)[:2]]
    if numbers[:1] == [1] and len(numbers) == 2:
        return numbers[1]
    return numbers[0] if numbers else 0


def find_java(environ: Mapping[str, str] | None = None) -> JavaRuntime:
    """Return the first Java that is new enough: JAVA_HOME's, then the one on PATH."""
    first_fault = f"No Java was found: {_ADVICE}."
    for number, (origin, path) in enumerate(
        _candidates(os.environ if environ is None else environ)
    ):
        fault, java = _probe(origin, path)
        if java is not None:
            return java
        if number == 0:
            first_fault = fault
    raise JavaMissing(first_fault)


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    home = environ.get("JAVA_HOME", "")
    if home:
        yield f"JAVA_HOME={home}", Path(home) / "bin" / "java"
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path:
        yield "the java on PATH", Path(on_path)


def _probe(origin: str, path: Path) -> tuple[str, JavaRuntime | None]:
    """Return a sentence about what is wrong, or the Java."""
    if not path.is_file():
        return f"{origin} holds no bin/java: {_ADVICE}.", None
    try:
        answer = subprocess.run(
            [path, "-version"], capture_output=True, text=True, timeout=_ANSWER_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{path} ({origin}) cannot be run ({error}): {_ADVICE}.", None
    said = answer.stderr + answer.stdout
    found = _VERSION.search(said)
    if answer.returncode != 0 or found is None:
        last_words = " ".join(said.split())[:200] or f"exit code {answer.returncode}"
        return f"{path} ({origin}) does not work ({last_words}): {_ADVICE}.", None
    java = JavaRuntime(path=path, version=found[1])
    if java.major < MINIMUM_MAJOR:
        return f"{path} ({origin}) is Java {java.version}, which is too old: {_ADVICE}.", None
    return "", java

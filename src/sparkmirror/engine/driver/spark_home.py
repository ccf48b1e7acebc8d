"""A Spark home from which Spark starts quickly, kept in the user's cache.

Two things make Spark slow to start. Its workers prefer the zipped copy of pyspark that lies in
`python/lib` of the Spark home, and compile it anew each time; so here is a home with everything but
that, links into the installed package, and workers find the installed, compiled one. And the JVM
loads thousands of classes; so here is also the place for an archive of them
(`engine.driver.cds_archive`), which it maps into memory instead.

Only for masters on this computer, and only if the user has not named a Spark home.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from sparkmirror.directories import cache_directory
from sparkmirror.errors import ConfigError

MIN_JAVA_VERSION = 17
UNLINKED_DIRECTORIES = {"python", "__pycache__"}


@dataclass(frozen=True, slots=True)
class SparkHome:
    """A Spark home made of links, and the class archive that belongs to it (maybe not there)."""

    path: Path
    cds_archive: Path


def linked_spark_home(environ: Mapping[str, str]) -> SparkHome | None:
    """Find the home or make it; None where the user has one, or none can be made."""
    package = _pyspark_package()
    if environ.get("SPARK_HOME") or package is None:
        return None
    directory = cache_directory(environ) / "spark" / _cache_key(package, environ)
    try:
        if not (directory / "home").is_dir():
            _create_links(package, directory)
    except OSError:
        return None  # a cache that cannot be written to is no reason not to start, only later
    return SparkHome(directory / "home", directory / "classes.jsa")


def require_java(environ: Mapping[str, str]) -> None:
    """Say what is missing before Spark does: it would not be understood."""
    java = _java_executable(environ)
    if not shutil.which(java, path=environ.get("PATH")):
        raise ConfigError.of(
            "JAVA_HOME",
            f"Spark needs Java {MIN_JAVA_VERSION} or newer, and {java} is not there: install it"
            f" and put"
            " it on PATH, or point JAVA_HOME at it",
        )


def link_executor_python(python: str, directory: Path, prefix: Path) -> None:
    """Let a Python that only executors have (`./archive/bin/python`) be found here, too.

    Executors unpack an archive where they run. The driver plans with the Python of the same name:
    here that is a link to the environment that runs us.
    """
    parts = Path(python).parts
    if len(parts) > 1 and not Path(python).is_absolute() and not (directory / parts[0]).exists():
        (directory / parts[0]).symlink_to(prefix)


def _pyspark_package() -> Path | None:
    """Where pyspark is installed, without importing it."""
    found = importlib.util.find_spec("pyspark")
    root = Path(found.origin).parent if found and found.origin else None
    return root if root and (root / "jars").is_dir() else None


def _cache_key(package: Path, environ: Mapping[str, str]) -> str:
    """Name what must match for an archive to be of use: the very jars, the very Java."""
    version = metadata.version("pyspark")
    installed = (package / "jars").stat().st_mtime_ns
    java = shutil.which(_java_executable(environ), path=environ.get("PATH")) or _java_executable(
        environ
    )
    what = f"{package} {version} {installed} {os.path.realpath(java)}"
    return f"{version}-{hashlib.sha256(what.encode()).hexdigest()[:12]}"


def _java_executable(environ: Mapping[str, str]) -> Path:
    """The Java that Spark will run, as its own scripts find it."""
    home = environ.get("JAVA_HOME", "")
    return Path(home, "bin", "java") if home else Path("java")


def _create_links(package: Path, directory: Path) -> None:
    """Link everything, then put it in place at once: another driver may be doing the same."""
    directory.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".home-", dir=directory))
    for part in package.iterdir():
        if part.is_dir() and part.name not in UNLINKED_DIRECTORIES:
            (draft / part.name).symlink_to(part)
    try:
        draft.rename(directory / "home")
    except OSError:
        shutil.rmtree(draft)
        if not (directory / "home").is_dir():
            raise

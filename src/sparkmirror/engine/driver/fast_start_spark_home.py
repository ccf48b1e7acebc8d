"""A Spark home that makes Spark start quickly, in the user's cache directory.

Two things make Spark slow to start:

- Spark's Python workers prefer the zipped pyspark in `python/lib` of the Spark home and compile it
  again in each process. This home links everything of the installed package except `python`, so
  workers import the installed, compiled pyspark.
- The JVM loads thousands of classes. This home has a class archive beside it
  (`engine.driver.cds_archive`), which the JVM maps into memory instead.

Used for local masters only, and only if the operator has not set SPARK_HOME.
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
from sparkmirror.engine.spark.java_check import java_executable

UNLINKED_DIRECTORIES = {"python", "__pycache__"}
ARCHIVE_NAME = "classes-3.jsa"
"""Raise its number when the archive is built with other classes: caches keep the old one."""


@dataclass(frozen=True, slots=True)
class SparkHome:
    """A Spark home made of links, and the path of its class archive, which may not exist yet."""

    path: Path
    cds_archive: Path


def linked_spark_home(environ: Mapping[str, str]) -> SparkHome | None:
    """The home in the cache; creates it if needed.

    None if SPARK_HOME is set, pyspark is not installed, or the cache cannot be written to.
    """
    package = _pyspark_package()
    if environ.get("SPARK_HOME") or package is None:
        return None
    directory = cache_directory(environ) / "spark" / _cache_key(package, environ)
    try:
        if not (directory / "home").is_dir():
            _create_links(package, directory)
    except OSError:
        return None  # without the home Spark only starts later
    return SparkHome(directory / "home", directory / ARCHIVE_NAME)


def _pyspark_package() -> Path | None:
    """The directory of the installed pyspark; does not import it."""
    found = importlib.util.find_spec("pyspark")
    root = Path(found.origin).parent if found and found.origin else None
    return root if root and (root / "jars").is_dir() else None


def _cache_key(package: Path, environ: Mapping[str, str]) -> str:
    """A directory name. A class archive is valid only for exactly these jars and this Java."""
    version = metadata.version("pyspark")
    installed = (package / "jars").stat().st_mtime_ns
    executable = java_executable(environ)
    java = shutil.which(executable, path=environ.get("PATH")) or executable
    what = f"{package} {version} {installed} {os.path.realpath(java)}"
    return f"{version}-{hashlib.sha256(what.encode()).hexdigest()[:12]}"


def _create_links(package: Path, directory: Path) -> None:
    """Create all links in a draft and rename it: another driver may do the same right now."""
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

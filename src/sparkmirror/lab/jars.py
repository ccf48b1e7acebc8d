"""Apache Kafka's jars, in a cache of the user's, one directory for each version.

    <cache>/kafka/4.3.1/*.jar, manifest.json    complete and checked, or not there at all
    <cache>/kafka/.fetching-4.3.1/              a download under way or interrupted
    <cache>/kafka/.lock-4.3.1                   held while a process fetches

Invariant: a version's directory appears by one rename, after its manifest was written; so a
directory with a manifest was complete once, and the manifest tells whether it still is.
Knows nothing about brokers.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from sparkmirror.directories import cache_directory
from sparkmirror.errors import JarsMissing
from sparkmirror.lab.ivy import Coordinates, Ivy, Progress
from sparkmirror.lab.java import Java, find_java
from sparkmirror.lab.locks import locked
from sparkmirror.lab.manifest import Manifest

log = logging.getLogger(__name__)

DEFAULT_VERSION = "4.3.1"
TRIED_VERSIONS = (DEFAULT_VERSION, "3.9.2")

_KAFKA = "org.apache.kafka"
_PARTS = ("kafka_2.13", "kafka-tools", "connect-runtime", "connect-mirror", "connect-file")
_VERSION = re.compile(r"[0-9][0-9A-Za-z]*([.-][0-9A-Za-z]+)*")
# Kafka logs through slf4j 1.7; before 4.0 its own configuration speaks log4j 1's dialect.
_LOG4J2 = Coordinates("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4")
_RELOAD4J = Coordinates("org.slf4j", "slf4j-reload4j", "1.7.36")


def coordinates(version: str) -> list[Coordinates]:
    """Name what is needed to run brokers, tools, Connect and MirrorMaker of one version."""
    binding = _RELOAD4J if is_before_4(version) else _LOG4J2
    return [*(Coordinates(_KAFKA, part, version) for part in _PARTS), binding]


def is_before_4(version: str) -> bool:
    """Tell whether a version is of the lines that ended with 3.9."""
    return int(re.split(r"\D", version, maxsplit=1)[0]) < 4


class Jars:
    """The cache. Every method may be called by several processes at the same time."""

    def __init__(self, cache: Path | None = None, java: Java | None = None) -> None:
        self._root = (cache_directory(os.environ) if cache is None else cache) / "kafka"
        self._java = java

    def ensure(
        self,
        version: str = DEFAULT_VERSION,
        progress: Callable[[Progress], None] | None = None,
    ) -> Path:
        """Return the directory with a version's jars, fetching them if they are not all there."""
        directory = self._directory(version)
        if not _faults(directory):
            return directory
        return self._fetch(version, progress or _silent, _faults)

    def verify(
        self,
        version: str = DEFAULT_VERSION,
        progress: Callable[[Progress], None] | None = None,
    ) -> Path:
        """Do as `ensure`, but compare every byte with the manifest first."""
        directory = self._directory(version)
        (progress or _silent)(Progress(stage="checking"))
        if not _deep_faults(directory):
            return directory
        return self._fetch(version, progress or _silent, _deep_faults)

    def classpath(self, version: str = DEFAULT_VERSION) -> str:
        """Return Java's class path for a version, fetching it first if need be."""
        return str(self.ensure(version) / "*")

    def manifest(self, version: str = DEFAULT_VERSION) -> Manifest | None:
        """Return what is in the cache of a version; None if it is not there."""
        return Manifest.read(self._directory(version))

    def versions(self) -> list[str]:
        """Name the versions in the cache."""
        return sorted(file.parent.name for file in self._root.glob("[0-9]*/manifest.json"))

    def _directory(self, version: str) -> Path:
        if not _VERSION.fullmatch(version):
            raise JarsMissing(f"{version!r} is no Kafka version: try {DEFAULT_VERSION}.")
        return self._root / version

    def _fetch(
        self,
        version: str,
        report: Callable[[Progress], None],
        faults: Callable[[Path], list[str]],
    ) -> Path:
        """Fetch a version that is missing or broken.

        1. One process at a time; whoever waited looks again.
        2. Ivy resolves and downloads in a directory that survives an interruption.
        3. The manifest is written, and one rename shows the jars to everybody.
        """
        directory = self._directory(version)
        work = self._root / f".fetching-{version}"

        def wait_for(holder: str) -> None:
            log.info("Waiting for %s, which is fetching Kafka %s", holder, version)
            report(Progress(stage=f"waiting for {holder}"))

        with locked(self._root / f".lock-{version}", wait_for) as lock:
            if not (broken := faults(directory)):
                return directory
            if directory.exists():
                log.warning("Kafka %s is broken in the cache: %s", version, ", ".join(broken))
            log.info("Fetching Apache Kafka %s into %s", version, directory)
            arrived = work / "jars"
            shutil.rmtree(arrived, ignore_errors=True)
            ivy = Ivy(work, self._java or find_java())
            ivy.retrieve(coordinates(version), arrived, report, keep_open=[lock])
            report(Progress(stage="checking"))
            manifest = Manifest.measure(version, arrived.glob("*.jar"))
            manifest.write(arrived)
            _put_in_place(arrived, directory, aside=work / "replaced")
            shutil.rmtree(work, ignore_errors=True)
            log.info("Fetched %d jars, %d bytes", len(manifest.entries), manifest.size_bytes)
        return directory


def _put_in_place(arrived: Path, directory: Path, aside: Path) -> None:
    shutil.rmtree(aside, ignore_errors=True)
    if directory.exists():
        directory.rename(aside)
    arrived.rename(directory)


def _faults(directory: Path) -> list[str]:
    manifest = Manifest.read(directory)
    return ["no manifest"] if manifest is None else manifest.wrong_sizes(directory)


def _deep_faults(directory: Path) -> list[str]:
    manifest = Manifest.read(directory)
    return ["no manifest"] if manifest is None else manifest.wrong_contents(directory)


def _silent(_: Progress) -> None:
    pass

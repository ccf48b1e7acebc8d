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
from sparkmirror.java.java_runtime import JavaRuntime, find_java
from sparkmirror.lab.kafka.ivy import DownloadProgress, Ivy, MavenCoordinates
from sparkmirror.lab.kafka.manifest import Manifest
from sparkmirror.lab.processes.file_locks import locked

log = logging.getLogger(__name__)

DEFAULT_VERSION = "4.3.1"
TESTED_VERSIONS = (DEFAULT_VERSION, "3.9.2")

_KAFKA = "org.apache.kafka"
_ARTIFACTS = ("kafka_2.13", "kafka-tools", "connect-runtime", "connect-mirror", "connect-file")
_VERSION = re.compile(r"[0-9][0-9A-Za-z]*([.-][0-9A-Za-z]+)*")
# Kafka logs through slf4j 1.7; before 4.0 its own configuration speaks log4j 1's dialect.
_LOG4J2 = MavenCoordinates("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4")
_RELOAD4J = MavenCoordinates("org.slf4j", "slf4j-reload4j", "1.7.36")


def kafka_coordinates(version: str) -> list[MavenCoordinates]:
    """Name what is needed to run brokers, tools, Connect and MirrorMaker of one version."""
    binding = _RELOAD4J if is_before_4(version) else _LOG4J2
    return [*(MavenCoordinates(_KAFKA, part, version) for part in _ARTIFACTS), binding]


def is_before_4(version: str) -> bool:
    """Tell whether a version is of the lines that ended with 3.9."""
    return int(re.split(r"\D", version, maxsplit=1)[0]) < 4


class JarCache:
    """The cache. Every method may be called by several processes at the same time."""

    def __init__(self, cache: Path | None = None, java: JavaRuntime | None = None) -> None:
        self._root = (cache_directory(os.environ) if cache is None else cache) / "kafka"
        self._java = java

    def ensure(
        self,
        version: str = DEFAULT_VERSION,
        progress: Callable[[DownloadProgress], None] | None = None,
    ) -> Path:
        """Return the directory with a version's jars, fetching them if they are not all there."""
        directory = self._directory(version)
        if not _size_faults(directory):
            return directory
        return self._fetch(version, progress or _no_progress, _size_faults)

    def verify(
        self,
        version: str = DEFAULT_VERSION,
        progress: Callable[[DownloadProgress], None] | None = None,
    ) -> Path:
        """Do as `ensure`, but compare every byte with the manifest first."""
        directory = self._directory(version)
        (progress or _no_progress)(DownloadProgress(stage="checking"))
        if not _checksum_faults(directory):
            return directory
        return self._fetch(version, progress or _no_progress, _checksum_faults)

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
        report: Callable[[DownloadProgress], None],
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
            report(DownloadProgress(stage=f"waiting for {holder}"))

        with locked(self._root / f".lock-{version}", wait_for) as lock:
            if not (broken := faults(directory)):
                return directory
            if directory.exists():
                log.warning("Kafka %s is broken in the cache: %s", version, ", ".join(broken))
            log.info("Fetching Apache Kafka %s into %s", version, directory)
            arrived = work / "jars"
            shutil.rmtree(arrived, ignore_errors=True)
            ivy = Ivy(work, self._java or find_java())
            ivy.retrieve(kafka_coordinates(version), arrived, report, keep_open=[lock])
            report(DownloadProgress(stage="checking"))
            manifest = Manifest.from_files(version, arrived.glob("*.jar"))
            manifest.write(arrived)
            _install(arrived, directory, aside=work / "replaced")
            shutil.rmtree(work, ignore_errors=True)
            log.info("Fetched %d jars, %d bytes", len(manifest.entries), manifest.size_bytes)
        return directory


def _install(arrived: Path, directory: Path, aside: Path) -> None:
    shutil.rmtree(aside, ignore_errors=True)
    if directory.exists():
        directory.rename(aside)
    arrived.rename(directory)


def _size_faults(directory: Path) -> list[str]:
    manifest = Manifest.read(directory)
    return ["no manifest"] if manifest is None else manifest.wrong_sizes(directory)


def _checksum_faults(directory: Path) -> list[str]:
    manifest = Manifest.read(directory)
    return ["no manifest"] if manifest is None else manifest.wrong_contents(directory)


def _no_progress(_: DownloadProgress) -> None:
    pass

"""The cache of Apache Kafka's jars, with one directory for each version.

    <cache>/kafka/4.3.1/*.jar, manifest.json    complete and checked, or absent
    <cache>/kafka/.fetching-4.3.1/              a running or interrupted download
    <cache>/kafka/.lock-4.3.1                   held while a process downloads

Invariant: one rename creates the directory of a version, after its manifest was written. So a
directory with a manifest was complete once, and the manifest shows whether it still is.
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
from sparkmirror.lab.kafka.jar_checksums import JarChecksums
from sparkmirror.lab.kafka.kafka_version import is_before
from sparkmirror.lab.processes.file_locks import locked

log = logging.getLogger(__name__)

DEFAULT_VERSION = "4.3.1"
TESTED_VERSIONS = (DEFAULT_VERSION, "3.9.2", "3.0.2", "2.8.2")
"""From the newest to the oldest."""

_KAFKA = "org.apache.kafka"
_ARTIFACTS = ("kafka_2.13", "kafka-tools", "connect-runtime", "connect-mirror", "connect-file")
_VERSION = re.compile(r"[0-9][0-9A-Za-z]*([.-][0-9A-Za-z]+)*")
# Kafka logs through slf4j 1.7; before 4.0 its logging configuration has log4j 1's format. Before
# 3.1 its libraries depend on log4j 1 and on slf4j's binding to it.
_LOG4J2 = MavenCoordinates("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4")
_RELOAD4J = MavenCoordinates("org.slf4j", "slf4j-reload4j", "1.7.36")


def kafka_coordinates(version: str) -> list[MavenCoordinates]:
    """Return the libraries that brokers, tools, Connect and MirrorMaker of a version need."""
    parts = [MavenCoordinates(_KAFKA, part, version) for part in _ARTIFACTS]
    if is_before(version, 3, 1):
        return parts
    return [*parts, _RELOAD4J if is_before(version, 4) else _LOG4J2]


class JarCache:
    """The jar cache. Several processes may call every method at the same time."""

    def __init__(self, cache: Path | None = None, java: JavaRuntime | None = None) -> None:
        self._root = (cache_directory(os.environ) if cache is None else cache) / "kafka"
        self._java = java

    def ensure(
        self,
        version: str = DEFAULT_VERSION,
        progress: Callable[[DownloadProgress], None] | None = None,
    ) -> Path:
        """Return the directory with a version's jars; download them if one is missing.

        Blocks. Raises JarsMissing.
        """
        directory = self._directory(version)
        if not _size_faults(directory):
            return directory
        return self._fetch(version, progress or _no_progress, _size_faults)

    def verify(
        self,
        version: str = DEFAULT_VERSION,
        progress: Callable[[DownloadProgress], None] | None = None,
    ) -> Path:
        """Do the same as `ensure`, but compare checksums with the manifest, not only sizes."""
        directory = self._directory(version)
        (progress or _no_progress)(DownloadProgress(stage="checking"))
        if not _checksum_faults(directory):
            return directory
        return self._fetch(version, progress or _no_progress, _checksum_faults)

    def classpath(self, version: str = DEFAULT_VERSION) -> str:
        """Return Java's class path for a version; download the jars if they are missing."""
        return str(self.ensure(version) / "*")

    def manifest(self, version: str = DEFAULT_VERSION) -> JarChecksums | None:
        """Return the manifest of a version; None if the cache does not hold it."""
        return JarChecksums.read(self._directory(version))

    def versions(self) -> list[str]:
        """Return the versions in the cache, sorted."""
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
        """Download a version that is missing or broken; return its directory.

        1. Take the lock. Another process may have downloaded the version meanwhile: check again.
        2. Ivy resolves and downloads in a directory that survives an interruption.
        3. Write the manifest. One rename then installs the jars.
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
            downloaded = work / "jars"
            shutil.rmtree(downloaded, ignore_errors=True)
            ivy = Ivy(work, self._java or find_java())
            ivy.retrieve(kafka_coordinates(version), downloaded, report, keep_open=[lock])
            report(DownloadProgress(stage="checking"))
            manifest = JarChecksums.from_files(version, downloaded.glob("*.jar"))
            manifest.write(downloaded)
            _install(downloaded, directory, backup=work / "replaced")
            shutil.rmtree(work, ignore_errors=True)
            log.info("Fetched %d jars, %d bytes", len(manifest.entries), manifest.size_bytes)
        return directory


def _install(downloaded: Path, directory: Path, backup: Path) -> None:
    shutil.rmtree(backup, ignore_errors=True)
    if directory.exists():
        directory.rename(backup)
    downloaded.rename(directory)


def _size_faults(directory: Path) -> list[str]:
    manifest = JarChecksums.read(directory)
    return ["no manifest"] if manifest is None else manifest.wrong_sizes(directory)


def _checksum_faults(directory: Path) -> list[str]:
    manifest = JarChecksums.read(directory)
    return ["no manifest"] if manifest is None else manifest.wrong_contents(directory)


def _no_progress(_: DownloadProgress) -> None:
    pass

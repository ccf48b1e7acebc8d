"""The class data sharing (CDS) archive of Kafka: brokers and tools start in half the time with it.

    <cache>/class-archives/kafka-4.3.1-0123456789ab.jsa

The JVM maps archived classes into memory instead of unpacking, parsing and verifying them. An
archive is valid for exactly these jars and this Java. So its name has a hash of both, and another
Java or other jars find none. Without an archive brokers and tools start all the same.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from sparkmirror.java.java_runtime import JavaRuntime

_HASH_DIGITS = 12
_CONTENTS = "2"
"""Part of the hash. Raise it when the builder loads other classes: caches keep the old archive."""


def archive_file(cache: Path, version: str, java: JavaRuntime, jars: Path) -> Path:
    """Return where the archive for these jars and this Java is, or would be."""
    facts = [_CONTENTS, str(java.path.resolve()), java.version, str(jars)]
    for jar in sorted(jars.glob("*.jar")):
        status = jar.stat()
        facts.append(f"{jar.name} {status.st_size} {status.st_mtime_ns}")
    digest = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:_HASH_DIGITS]
    return cache / "class-archives" / f"kafka-{version}-{digest}.jsa"


def archive_options(archive: Path) -> tuple[str, ...]:
    """Return the JVM options that use an archive; none if it does not exist."""
    return (f"-XX:SharedArchiveFile={archive}",) if archive.is_file() else ()


def dump_options(archive: Path) -> tuple[str, ...]:
    """Return the JVM options that write an archive when the JVM ends."""
    return (f"-XX:ArchiveClassesAtExit={archive}",)

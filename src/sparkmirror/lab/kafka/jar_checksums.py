"""The manifest of a directory of jars: names, sizes and SHA-256, in a file beside them.

Every use of the jars compares the sizes, which is cheap. `JarCache.verify` compares the hashes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

MANIFEST_FILE = "manifest.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class JarChecksum:
    """The expected name, size and hash of one file."""

    name: str
    size_bytes: int
    sha256: str

    @classmethod
    def from_file(cls, file: Path) -> Self:
        """Return the entry of a file as it is now."""
        return cls(name=file.name, size_bytes=file.stat().st_size, sha256=_sha256(file))


@dataclass(frozen=True, slots=True, kw_only=True)
class JarChecksums:
    """All files of one directory, sorted by name."""

    version: str
    entries: tuple[JarChecksum, ...]

    @property
    def size_bytes(self) -> int:
        """The size of all files together."""
        return sum(entry.size_bytes for entry in self.entries)

    @classmethod
    def from_files(cls, version: str, files: Iterable[Path]) -> Self:
        """Return the manifest of files as they are now."""
        return cls(
            version=version, entries=tuple(JarChecksum.from_file(file) for file in sorted(files))
        )

    @classmethod
    def read(cls, directory: Path) -> Self | None:
        """Return the manifest of a directory; None if it is missing or unreadable."""
        try:
            stored = json.loads((directory / MANIFEST_FILE).read_text(encoding="utf-8"))
            entries = tuple(
                JarChecksum(name=jar["name"], size_bytes=int(jar["size"]), sha256=jar["sha256"])
                for jar in stored["jars"]
            )
            return cls(version=str(stored["version"]), entries=entries)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write(self, directory: Path) -> None:
        """Write the manifest into the directory of the files."""
        jars = [
            {"name": entry.name, "size": entry.size_bytes, "sha256": entry.sha256}
            for entry in self.entries
        ]
        text = json.dumps({"version": self.version, "jars": jars}, indent=1)
        (directory / MANIFEST_FILE).write_text(text + "\n", encoding="utf-8")

    def wrong_sizes(self, directory: Path) -> list[str]:
        """Return the names of files that are missing or have another size."""
        return [entry.name for entry in self.entries if not _has_size(directory, entry)]

    def wrong_contents(self, directory: Path) -> list[str]:
        """Return the names of files that are missing or have other content."""
        return [
            entry.name
            for entry in self.entries
            if not _has_size(directory, entry) or _sha256(directory / entry.name) != entry.sha256
        ]


def _has_size(directory: Path, entry: JarChecksum) -> bool:
    try:
        return (directory / entry.name).stat().st_size == entry.size_bytes
    except OSError:
        return False


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()

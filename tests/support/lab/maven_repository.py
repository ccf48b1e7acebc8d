"""A Maven repository in a directory: libraries with dependencies, for the real Ivy to resolve."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Sequence
from pathlib import Path

from sparkmirror.lab.kafka.ivy import MavenCoordinates

_POM = """<project><modelVersion>4.0.0</modelVersion>
<groupId>{0}</groupId><artifactId>{1}</artifactId><version>{2}</version>
<dependencies>{needs}</dependencies></project>
"""
_DEPENDENCY = (
    "<dependency><groupId>{0}</groupId><artifactId>{1}</artifactId><version>{2}</version>"
    "</dependency>"
)
_SETTINGS = """<ivysettings><settings defaultResolver="here"/><resolvers>
<ibiblio name="here" m2compatible="true" usepoms="true" root="{root}"/></resolvers></ivysettings>
"""


class MavenRepository:
    """A repository; empty at first."""

    def __init__(self, directory: Path) -> None:
        self._root = directory / "repository"
        self._root.mkdir(parents=True)
        self.settings = directory / "ivysettings.xml"
        self.settings.write_text(_SETTINGS.format(root=self._root.as_uri()), encoding="utf-8")

    def add(self, library: MavenCoordinates, needs: Sequence[MavenCoordinates] = ()) -> Path:
        """Publish a library with a small jar; returns the jar's file."""
        text = "".join(_DEPENDENCY.format(*need) for need in needs)
        self._publish(library, "pom", _POM.format(*library, needs=text).encode())
        return self._publish(library, "jar", _jar(library))

    def _publish(self, library: MavenCoordinates, kind: str, content: bytes) -> Path:
        folder = self._root.joinpath(
            *library.organisation.split("."), library.module, library.revision
        )
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{library.module}-{library.revision}.{kind}"
        file.write_bytes(content)
        checksum = hashlib.sha1(content, usedforsecurity=False).hexdigest()
        file.with_name(f"{file.name}.sha1").write_text(checksum, encoding="ascii")
        return file


def _jar(library: MavenCoordinates) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as jar:
        jar.writestr("name", ":".join(library))
    return content.getvalue()

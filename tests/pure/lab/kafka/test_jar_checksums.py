"""A manifest finds missing and changed files of a directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.lab.kafka.jar_checksums import MANIFEST_FILE, JarChecksums


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    (tmp_path / "b.jar").write_bytes(b"bbb")
    (tmp_path / "a.jar").write_bytes(b"a")
    JarChecksums.from_files("1.0", tmp_path.glob("*.jar")).write(tmp_path)
    return tmp_path


def _read(directory: Path) -> JarChecksums:
    manifest = JarChecksums.read(directory)
    assert manifest is not None
    return manifest


def test_manifest_is_read_as_written(jars: Path) -> None:
    manifest = _read(jars)
    assert manifest == JarChecksums.from_files("1.0", jars.glob("*.jar"))
    assert [entry.name for entry in manifest.entries] == ["a.jar", "b.jar"]
    assert manifest.size_bytes == 4


def test_complete_directory_has_no_wrong_files(jars: Path) -> None:
    manifest = _read(jars)
    assert manifest.wrong_sizes(jars) == []
    assert manifest.wrong_contents(jars) == []


def test_wrong_sizes_names_missing_and_shortened_files(jars: Path) -> None:
    (jars / "a.jar").unlink()
    (jars / "b.jar").write_bytes(b"bb")
    assert _read(jars).wrong_sizes(jars) == ["a.jar", "b.jar"]
    assert _read(jars).wrong_contents(jars) == ["a.jar", "b.jar"]


def test_only_wrong_contents_names_files_with_changed_bytes(jars: Path) -> None:
    (jars / "b.jar").write_bytes(b"bxb")
    assert _read(jars).wrong_sizes(jars) == []
    assert _read(jars).wrong_contents(jars) == ["b.jar"]


@pytest.mark.parametrize(
    "text", ["", "[]", '{"version": "1"}', '{"version": "1", "jars": [{"name": 1}]}'],
    ids=["empty", "list", "half", "entry"],
)  # fmt: skip
def test_malformed_manifest_is_read_as_none(jars: Path, text: str) -> None:
    (jars / MANIFEST_FILE).write_text(text, encoding="utf-8")
    assert JarChecksums.read(jars) is None


def test_missing_manifest_is_read_as_none(tmp_path: Path) -> None:
    assert JarChecksums.read(tmp_path) is None

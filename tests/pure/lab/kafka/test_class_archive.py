"""The class archive of brokers: one for each Java and each set of jars, and none is needed."""

from __future__ import annotations

import os
from pathlib import Path

from sparkmirror.java.java_runtime import JavaRuntime
from sparkmirror.lab.kafka.class_archive import archive_file, archive_options, dump_options

JAVA = JavaRuntime(path=Path("/java/bin/java"), version="17.0.1")


def make_jars(directory: Path) -> Path:
    directory.mkdir()
    for name in ("a.jar", "b.jar"):
        (directory / name).write_bytes(name.encode())
        os.utime(directory / name, (1, 1))
    return directory


def test_the_same_java_and_jars_have_the_same_archive(tmp_path: Path) -> None:
    jars = make_jars(tmp_path / "jars")
    archive = archive_file(tmp_path, "4.3.1", JAVA, jars)
    assert archive == archive_file(tmp_path, "4.3.1", JAVA, jars)
    assert archive.parent == tmp_path / "class-archives"
    assert archive.name.startswith("kafka-4.3.1-")


def test_another_java_or_changed_jars_have_another_archive(tmp_path: Path) -> None:
    """The JVM would refuse the old one."""
    jars = make_jars(tmp_path / "jars")
    archives = [archive_file(tmp_path, "4.3.1", JAVA, jars)]
    other_path = JavaRuntime(path=Path("/other/java"), version=JAVA.version)
    other_version = JavaRuntime(path=JAVA.path, version="21")
    for java in (other_path, other_version):
        archives.append(archive_file(tmp_path, "4.3.1", java, jars))
    os.utime(jars / "b.jar", (2, 2))
    archives.append(archive_file(tmp_path, "4.3.1", JAVA, jars))
    (jars / "c.jar").touch()
    archives.append(archive_file(tmp_path, "4.3.1", JAVA, jars))
    assert len(set(archives)) == len(archives)


def test_an_archive_is_used_only_if_it_exists(tmp_path: Path) -> None:
    archive = tmp_path / "a.jsa"
    assert archive_options(archive) == ()
    assert dump_options(archive) == (f"-XX:ArchiveClassesAtExit={archive}",)
    archive.touch()
    assert archive_options(archive) == (f"-XX:SharedArchiveFile={archive}",)

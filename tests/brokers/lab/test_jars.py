"""The jar cache with the real Ivy, from a repository on disk and from the cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.errors import JarsMissing
from sparkmirror.lab.kafka.ivy import SETTINGS_VARIABLE, DownloadProgress, MavenCoordinates
from sparkmirror.lab.kafka.jar_cache import DEFAULT_VERSION, JarCache, kafka_coordinates
from tests.support.lab.maven_repository import MavenRepository

SHARED = MavenCoordinates("org.example", "shared", "1.7")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MavenRepository:
    """A repository with Kafka 9.8.7, whose jars all depend on one shared library."""
    repository = MavenRepository(tmp_path)
    repository.add(SHARED)
    for part in kafka_coordinates("9.8.7"):
        repository.add(part, needs=[SHARED])
    monkeypatch.setenv(SETTINGS_VARIABLE, str(repository.settings))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return repository


@pytest.fixture
def jars(tmp_path: Path) -> JarCache:
    return JarCache(tmp_path / "cache")


def test_kafka_and_its_dependencies_are_fetched_in_one_run(
    repository: MavenRepository, jars: JarCache, tmp_path: Path
) -> None:
    seen: list[DownloadProgress] = []
    directory = jars.ensure("9.8.7", seen.append)
    wanted = [*kafka_coordinates("9.8.7"), SHARED]
    assert {file.name for file in directory.glob("*.jar")} == {
        f"{library.module}-{library.revision}.jar" for library in wanted
    }
    downloads = [progress for progress in seen if progress.stage == "downloading"]
    assert (downloads[-1].done, downloads[-1].total) == (len(wanted), len(wanted))
    assert not (tmp_path / "home").exists(), "Ivy wrote outside the cache"


def test_jar_with_a_wrong_checksum_is_rejected(repository: MavenRepository, jars: JarCache) -> None:
    jar = repository.add(SHARED)
    jar.write_bytes(jar.read_bytes() + b"tampered")
    with pytest.raises(JarsMissing):
        jars.ensure("9.8.7")
    assert jars.versions() == []
    repository.add(SHARED)
    assert (jars.ensure("9.8.7") / "shared-1.7.jar").exists()


def test_error_names_a_version_that_does_not_exist(
    repository: MavenRepository, jars: JarCache
) -> None:
    with pytest.raises(JarsMissing) as raised:
        jars.ensure("9.8.8")
    assert str(raised.value) == (
        "The Maven repository does not hold org.apache.kafka:kafka_2.13:9.8.8:"
        " choose another version."
    )


def test_cached_kafka_is_complete_and_needs_no_network_and_no_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = JarCache().verify(DEFAULT_VERSION)
    monkeypatch.setenv(SETTINGS_VARIABLE, str(tmp_path / "nowhere"))
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("PATH", "")
    assert JarCache().ensure(DEFAULT_VERSION) == directory
    names = {jar.name for jar in directory.glob("*.jar")}
    assert names >= {
        f"{part}-{DEFAULT_VERSION}.jar"
        for part in ("kafka_2.13", "kafka-tools", "connect-runtime", "connect-mirror")
    }

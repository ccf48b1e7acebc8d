"""The jar cache fetches each version once, checks it and replaces damaged jars."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sparkmirror.errors import JarsMissing
from sparkmirror.lab.kafka.ivy import DownloadProgress
from sparkmirror.lab.kafka.jar_cache import DEFAULT_VERSION, JarCache, kafka_coordinates
from tests.support.lab.fake_ivy import (
    COMPLETE,
    DISK_FULL,
    HANGS_AFTER_FIRST_JAR,
    HANGS_SILENTLY,
    NO_NETWORK,
    SLOW_DOWNLOAD,
    UNTRUSTED_CERTIFICATE,
    FakeIvy,
)

_FETCH = """
import pathlib, sys
from sparkmirror.lab.kafka.jar_cache import JarCache
from sparkmirror.java.java_runtime import JavaRuntime

cache, java = map(pathlib.Path, sys.argv[1:])
JarCache(cache, JavaRuntime(path=java, version="17")).ensure("4.3.1")
"""


@pytest.fixture
def ivy(tmp_path: Path) -> FakeIvy:
    return FakeIvy(tmp_path / "bin", COMPLETE)


@pytest.fixture
def jars(tmp_path: Path, ivy: FakeIvy) -> JarCache:
    return JarCache(tmp_path / "cache", ivy.java)


def _names(directory: Path) -> list[str]:
    return sorted(file.name for file in directory.iterdir())


def test_jars_are_fetched_once_and_then_taken_from_the_cache(jars: JarCache, ivy: FakeIvy) -> None:
    directory = jars.ensure("4.3.1")
    assert _names(directory) == ["manifest.json", "one-1.jar", "two-2.jar"]
    assert jars.classpath("4.3.1") == f"{directory}/*"
    assert jars.versions() == ["4.3.1"]
    assert len(ivy.calls()) == 1


def test_each_version_has_its_own_directory(jars: JarCache) -> None:
    assert jars.ensure("4.3.1") != jars.ensure("3.9.2")
    assert jars.versions() == ["3.9.2", "4.3.1"]


def test_cache_holds_only_lock_and_version(jars: JarCache, tmp_path: Path) -> None:
    jars.ensure("4.3.1")
    assert _names(tmp_path / "cache" / "kafka") == [".lock-4.3.1", "4.3.1"]


def test_progress_counts_files_and_bytes(jars: JarCache) -> None:
    seen: list[DownloadProgress] = []
    jars.ensure("4.3.1", seen.append)
    assert seen[0] == DownloadProgress(stage="resolving", total=1, file="one-1")
    downloads = [progress for progress in seen if progress.stage == "downloading"]
    assert downloads[0].file == "one-1.jar"
    last = downloads[-1]
    assert (last.done, last.total, last.size_bytes) == (2, 2, 4096)
    assert seen[-1].stage == "checking"


def test_bytes_are_counted_during_a_download(jars: JarCache, ivy: FakeIvy) -> None:
    ivy.set_script(SLOW_DOWNLOAD)
    seen: list[DownloadProgress] = []

    def on_progress(progress: DownloadProgress) -> None:
        seen.append(progress)
        if progress.size_bytes:
            ivy.let_go_on()

    jars.ensure("4.3.1", on_progress)
    assert (
        DownloadProgress(stage="downloading", total=1, size_bytes=4 * 15 * 1024, file="one-1.jar")
        in seen
    )


@pytest.mark.parametrize(
    "damage",
    [
        lambda jar: jar.unlink(),
        lambda jar: jar.write_bytes(b"o"),
        lambda jar: (jar.parent / "manifest.json").write_text("{", encoding="utf-8"),
    ],
    ids=["missing", "shortened", "manifest"],
)
def test_damaged_jars_are_fetched_again_on_use(
    jars: JarCache, ivy: FakeIvy, damage: Callable[[Path], object]
) -> None:
    damage(jars.ensure("4.3.1") / "one-1.jar")
    directory = jars.ensure("4.3.1")
    assert (directory / "one-1.jar").read_bytes() == b"one"
    assert len(ivy.calls()) == 2


def test_verify_fetches_changed_jars_again(jars: JarCache, ivy: FakeIvy) -> None:
    jar = jars.ensure("4.3.1") / "one-1.jar"
    jars.verify("4.3.1")
    assert len(ivy.calls()) == 1
    jar.write_bytes(b"0ne")
    jars.ensure("4.3.1")
    assert len(ivy.calls()) == 1
    jars.verify("4.3.1")
    assert jar.read_bytes() == b"one"


def test_interrupted_download_leaves_no_version_and_continues(
    jars: JarCache, ivy: FakeIvy, tmp_path: Path
) -> None:
    ivy.set_script(HANGS_AFTER_FIRST_JAR)

    def interrupt(progress: DownloadProgress) -> None:
        if progress.file == "two-2.jar":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        jars.ensure("4.3.1", interrupt)
    assert jars.versions() == []
    with pytest.raises(ProcessLookupError):
        os.kill(ivy.calls()[0], 0)
    first = next((tmp_path / "cache").rglob("one-1.jar"))
    written = first.stat().st_mtime_ns
    ivy.set_script(COMPLETE)
    seen: list[DownloadProgress] = []

    def on_progress(progress: DownloadProgress) -> None:
        if first.exists():
            assert first.stat().st_mtime_ns == written
        seen.append(progress)

    assert _names(jars.ensure("4.3.1", on_progress)) == ["manifest.json", "one-1.jar", "two-2.jar"]
    assert seen


def test_second_caller_waits_and_downloads_nothing(jars: JarCache, ivy: FakeIvy) -> None:
    entered = threading.Event()
    go_on = threading.Event()
    waited: list[str] = []

    def hold(_: DownloadProgress) -> None:
        entered.set()
        go_on.wait(50)

    def on_wait(progress: DownloadProgress) -> None:
        waited.append(progress.stage)
        go_on.set()

    with ThreadPoolExecutor() as pool:
        first = pool.submit(jars.ensure, "4.3.1", hold)
        assert entered.wait(50)
        second = pool.submit(jars.ensure, "4.3.1", on_wait)
        assert first.result(50) == second.result(50)
    assert waited == [f"waiting for process {os.getpid()}"]
    assert len(ivy.calls()) == 1


def test_lock_is_held_until_an_orphaned_download_ends(
    jars: JarCache, ivy: FakeIvy, tmp_path: Path
) -> None:
    ivy.set_script(HANGS_SILENTLY)
    with subprocess.Popen(
        [sys.executable, "-c", _FETCH, tmp_path / "cache", ivy.java.path]
    ) as child:
        while not ivy.calls():
            time.sleep(0.01)
        child.kill()
    orphan = ivy.calls()[0]
    ivy.set_script(COMPLETE)
    seen: list[str] = []

    def end_orphan(progress: DownloadProgress) -> None:
        if not seen:
            os.kill(orphan, signal.SIGKILL)
        seen.append(progress.stage)

    jars.ensure("4.3.1", end_orphan)
    assert seen[0] == f"waiting for process {child.pid}"
    assert seen[-1] == "checking"


def test_error_without_network_says_what_to_do(jars: JarCache, ivy: FakeIvy) -> None:
    ivy.set_script(NO_NETWORK)
    with pytest.raises(JarsMissing) as raised:
        jars.ensure(DEFAULT_VERSION)
    assert str(raised.value) == (
        "org.apache.kafka:kafka_2.13:4.3.1 is not in the cache and the Maven repository cannot be"
        " reached: go online once, set HTTPS_PROXY, or name a mirror in SPARKMIRROR_IVY_SETTINGS."
    )


def test_tls_error_names_the_host_and_says_what_to_do(jars: JarCache, ivy: FakeIvy) -> None:
    ivy.set_script(UNTRUSTED_CERTIFICATE)
    with pytest.raises(JarsMissing) as raised:
        jars.ensure(DEFAULT_VERSION)
    message = str(raised.value)
    assert "TLS certificate of repo.example (javax.net.ssl.SSLHandshakeException: PKIX" in message
    assert "JAVA_TOOL_OPTIONS=-Djavax.net.ssl.trustStore=" in message
    assert "go online" not in message


def test_other_error_contains_the_output_of_ivy(jars: JarCache, ivy: FakeIvy) -> None:
    ivy.set_script(DISK_FULL)
    with pytest.raises(JarsMissing, match="No space left on device"):
        jars.ensure("4.3.1")


@pytest.mark.parametrize("version", ["", "../4.3.1", "latest", "4.+", "4.3.1 ", "4.3.1/x"])
def test_malformed_version_is_rejected(jars: JarCache, ivy: FakeIvy, version: str) -> None:
    with pytest.raises(JarsMissing, match="is no Kafka version: try 4.3.1"):
        jars.ensure(version)
    assert ivy.calls() == []


def test_error_names_a_missing_settings_file(
    jars: JarCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARKMIRROR_IVY_SETTINGS", "/nowhere.xml")
    with pytest.raises(JarsMissing, match="names /nowhere.xml, which is not a file"):
        jars.ensure("4.3.1")


def test_logging_binding_depends_on_the_version() -> None:
    assert kafka_coordinates("4.0.0")[-1].module == "log4j-slf4j-impl"
    assert kafka_coordinates("3.9.2")[-1].module == "slf4j-reload4j"
    assert {library.organisation for library in kafka_coordinates("3.0.2")} == {"org.apache.kafka"}

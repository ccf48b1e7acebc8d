"""The quick Spark home: links to all of Spark but its zipped Python, in the user's cache."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from sparkmirror.engine.driver.spark_home import (
    link_executor_python,
    linked_spark_home,
    require_java,
)
from sparkmirror.errors import ConfigError


def test_the_home_has_spark_but_not_its_zipped_python(tmp_path: Path) -> None:
    home = linked_spark_home({"SPARKMIRROR_CACHE": str(tmp_path)})
    assert home is not None
    assert (home.path / "bin" / "spark-submit").is_file()
    assert any((home.path / "jars").glob("spark-core_*.jar"))
    assert not (home.path / "python").exists()
    assert not any(zipfile.is_zipfile(path) for path in home.path.rglob("*.zip"))
    assert home.cds_archive.parent == home.path.parent


def test_it_is_the_same_the_next_time(tmp_path: Path) -> None:
    environ = {"SPARKMIRROR_CACHE": str(tmp_path)}
    assert linked_spark_home(environ) == linked_spark_home(environ)
    assert len(list((tmp_path / "spark").iterdir())) == 1
    assert [path.name for path in next((tmp_path / "spark").iterdir()).iterdir()] == ["home"]


def test_another_java_has_a_place_of_its_own(tmp_path: Path) -> None:
    first = linked_spark_home({"SPARKMIRROR_CACHE": str(tmp_path)})
    second = linked_spark_home({"SPARKMIRROR_CACHE": str(tmp_path), "JAVA_HOME": "/opt/java"})
    assert first != second


def test_a_home_that_the_user_named_is_left_alone(tmp_path: Path) -> None:
    environ = {"SPARKMIRROR_CACHE": str(tmp_path), "SPARK_HOME": "/opt/spark"}
    assert linked_spark_home(environ) is None


def test_a_cache_that_cannot_be_written_to_is_done_without(tmp_path: Path) -> None:
    occupied = tmp_path / "file"
    occupied.touch()
    assert linked_spark_home({"SPARKMIRROR_CACHE": str(occupied)}) is None


def test_a_python_of_executors_is_stood_in_for(tmp_path: Path) -> None:
    here, prefix = tmp_path / "here", tmp_path / "prefix"
    here.mkdir()
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin" / "python").touch()
    for absolute in ("python3", str(prefix / "bin" / "python")):
        link_executor_python(absolute, here, prefix)
    assert list(here.iterdir()) == []
    for _ in range(2):
        link_executor_python("./archive/bin/python", here, prefix)
        assert (here / "archive" / "bin" / "python").is_file()


def test_a_missing_java_is_named_before_spark_stumbles_over_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="needs Java 17"):
        require_java({"JAVA_HOME": str(tmp_path)})
    with pytest.raises(ConfigError, match="put it on PATH"):
        require_java({"PATH": str(tmp_path)})


def test_a_java_that_is_there_will_do(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.touch(mode=0o755)
    require_java({"JAVA_HOME": str(tmp_path), "PATH": ""})
    require_java({"PATH": str(java.parent)})

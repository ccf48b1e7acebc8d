"""The linked Spark home: links to all of Spark but its zipped Python, in the user's cache."""

from __future__ import annotations

import zipfile
from pathlib import Path

from sparkmirror.engine.driver.fast_start_spark_home import linked_spark_home


def test_the_home_has_spark_but_not_its_zipped_python(tmp_path: Path) -> None:
    home = linked_spark_home({"SPARKMIRROR_CACHE": str(tmp_path)})
    assert home is not None
    assert (home.path / "bin" / "spark-submit").is_file()
    assert any((home.path / "jars").glob("spark-core_*.jar"))
    assert not (home.path / "python").exists()
    assert not any(zipfile.is_zipfile(path) for path in home.path.rglob("*.zip"))
    assert home.cds_archive.parent == home.path.parent


def test_the_home_is_created_once(tmp_path: Path) -> None:
    environ = {"SPARKMIRROR_CACHE": str(tmp_path)}
    assert linked_spark_home(environ) == linked_spark_home(environ)
    assert len(list((tmp_path / "spark").iterdir())) == 1
    assert [path.name for path in next((tmp_path / "spark").iterdir()).iterdir()] == ["home"]


def test_another_java_gets_another_home(tmp_path: Path) -> None:
    first = linked_spark_home({"SPARKMIRROR_CACHE": str(tmp_path)})
    second = linked_spark_home({"SPARKMIRROR_CACHE": str(tmp_path), "JAVA_HOME": "/opt/java"})
    assert first != second


def test_a_spark_home_set_by_the_operator_is_used_as_it_is(tmp_path: Path) -> None:
    environ = {"SPARKMIRROR_CACHE": str(tmp_path), "SPARK_HOME": "/opt/spark"}
    assert linked_spark_home(environ) is None


def test_without_a_writable_cache_there_is_no_home(tmp_path: Path) -> None:
    occupied = tmp_path / "file"
    occupied.touch()
    assert linked_spark_home({"SPARKMIRROR_CACHE": str(occupied)}) is None

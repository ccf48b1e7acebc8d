"""Java for Spark: required before Spark starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.engine.spark.java_check import require_java
from sparkmirror.errors import ConfigError


def test_a_missing_java_is_named_before_spark_starts(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="needs Java 17"):
        require_java({"JAVA_HOME": str(tmp_path)})
    with pytest.raises(ConfigError, match="put it on PATH"):
        require_java({"PATH": str(tmp_path)})


def test_java_is_found_in_java_home_or_on_path(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.touch(mode=0o755)
    require_java({"JAVA_HOME": str(tmp_path), "PATH": ""})
    require_java({"PATH": str(java.parent)})

"""Which Java Spark runs on, and the check that it is installed."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from sparkmirror.errors import ConfigError
from sparkmirror.java.java_runtime import JAVA_ADVICE, MINIMUM_MAJOR


def java_executable(environ: Mapping[str, str]) -> Path:
    """The Java that Spark's own scripts run: that of `JAVA_HOME`, else `java` on `PATH`.

    The driver sets `JAVA_HOME` first if the packaged Java is used (`java_variables`).
    """
    home = environ.get("JAVA_HOME", "")
    return Path(home, "bin", "java") if home else Path("java")


def require_java(environ: Mapping[str, str]) -> None:
    """Raise ConfigError if there is no Java. Spark's own message would not name the cause."""
    java = java_executable(environ)
    if not shutil.which(java, path=environ.get("PATH")):
        raise ConfigError.of(
            "JAVA_HOME",
            f"Spark needs Java {MINIMUM_MAJOR} or newer, and {java} does not exist: {JAVA_ADVICE}",
        )

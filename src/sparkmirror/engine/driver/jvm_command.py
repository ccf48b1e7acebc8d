"""The command that starts the driver's JVM without Spark's launcher.

`spark-submit` is a shell script that starts a JVM only to print the command line of the next one,
whose main class then works out settings that a local Spark on this computer does not need. So the
driver starts Spark's gateway for Python itself, if the operator has set nothing that `spark-submit`
would act on.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from pathlib import Path

from sparkmirror.engine.driver.spark_conf import DRIVER_JAVA_OPTIONS, DRIVER_MEMORY

GATEWAY_CLASS = "org.apache.spark.api.python.PythonGatewayServer"
"""The class that `spark-submit` runs for pyspark."""
OPENED_PACKAGES = (
    *("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio"),
    *("java.util", "java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref"),
    *("sun.nio.ch", "sun.nio.cs", "sun.security.action", "sun.util.calendar"),
)
"""Packages of Java's base module that Spark uses, although they are not public."""
MODULE_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED_PACKAGES),
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
    "-Dderby.connection.requireAuthentication=false",
)
"""Those of Spark's launcher, without the vector instructions that only machine learning uses."""

SETTINGS_WITHOUT_SUBMIT = (
    *("spark.sparkmirror.", "spark.sql.", "spark.hadoop.", "spark.ui.", "spark.eventLog."),
    *("spark.master", "spark.app.name", DRIVER_MEMORY, DRIVER_JAVA_OPTIONS),
)
"""Settings, or their beginnings, that `spark-submit` only passes on."""
SUBMIT_VARIABLES = ("SPARK_", "PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_", "HADOOP_", "YARN_")
"""Environment variables, or their beginnings, of which `spark-submit` and its scripts read some."""

SUBMIT_FILES = ("spark-defaults.conf", "spark-env.sh")


def needs_spark_submit(settings: Collection[str], variables: Collection[str]) -> bool:
    """Whether the operator has set anything that `spark-submit` may act on."""
    return not all(key.startswith(SETTINGS_WITHOUT_SUBMIT) for key in settings) or any(
        name.startswith(SUBMIT_VARIABLES) for name in variables
    )


def has_submit_files(home: Path) -> bool:
    """Whether Spark's directory has a file that only `spark-submit` and its scripts read."""
    return any((home / "conf" / name).exists() for name in SUBMIT_FILES)


def class_path(home: Path) -> str:
    """Return the class path of Spark's launcher: a class archive is valid for one class path."""
    jars = home / "jars"
    first = map(str, sorted(jars.glob("slf4j-api-*.jar")))
    return ":".join([str(home / "conf"), *first, f"{jars}/*"])


def gateway_command(java: Path, home: Path, settings: Mapping[str, str]) -> list[str]:
    """Return the command of the JVM. All users of this computer can read it: no secrets."""
    return [
        str(java),
        "-cp",
        class_path(home),
        f"-Xmx{settings[DRIVER_MEMORY]}",
        *shlex.split(settings.get(DRIVER_JAVA_OPTIONS, "")),
        *MODULE_OPTIONS,
        *(f"-D{key}={value}" for key, value in settings.items() if key != DRIVER_JAVA_OPTIONS),
        GATEWAY_CLASS,
    ]

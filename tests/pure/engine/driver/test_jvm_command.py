"""The driver's JVM without spark-submit: the same options, and never if spark-submit has work."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pyspark
import pytest

from sparkmirror.engine.driver.jvm_command import (
    GATEWAY_CLASS,
    MODULE_OPTIONS,
    gateway_command,
    has_submit_files,
    needs_spark_submit,
)
from sparkmirror.engine.driver.spark_conf import (
    DRIVER_JAVA_OPTIONS,
    DriverEnvironment,
    build_spark_conf,
)
from sparkmirror.engine.supervisor.driver_spec import DriverSpec

SPEC = DriverSpec(receipts="/r", log="/l")
VECTORS = "--add-modules=jdk.incubator.vector"


def test_the_command_has_class_path_memory_options_and_settings(tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "slf4j-api-2.0.jar").touch()
    (tmp_path / "jars" / "spark-core.jar").touch()
    settings = build_spark_conf(SPEC, DriverEnvironment(directory=Path("/a b")))
    command = gateway_command(Path("/j/java"), tmp_path, settings)
    path = f"{tmp_path}/conf:{tmp_path}/jars/slf4j-api-2.0.jar:{tmp_path}/jars/*"
    assert command[:4] == ["/j/java", "-cp", path, "-Xmx512m"], "as Spark's launcher prints it"
    assert "-Djava.io.tmpdir=/a b" in command, "quotes of the options are those of a shell"
    assert "-Dspark.ui.enabled=false" in command
    assert not any(word.startswith(f"-D{DRIVER_JAVA_OPTIONS}") for word in command)
    assert command[-1] == GATEWAY_CLASS


def test_the_options_for_modules_are_those_of_sparks_launcher_but_for_vectors() -> None:
    [jar] = (Path(pyspark.__file__).parent / "jars").glob("spark-launcher_*.jar")
    with zipfile.ZipFile(jar) as classes:
        code = classes.read("org/apache/spark/launcher/JavaModuleOptions.class")
    options = re.findall(rb"-(?:-|D|XX:)[A-Za-z+][!-~]+", code)
    assert VECTORS.encode() in options
    assert {option.decode() for option in options} - {VECTORS} <= {*MODULE_OPTIONS}


@pytest.mark.parametrize(
    ("settings", "variables", "is_needed"),
    [
        ((), ("PATH", "JAVA_HOME"), False),
        (("spark.driver.memory", "spark.sql.adaptive.enabled"), (), False),
        (("spark.hadoop.fs.s3a.endpoint", DRIVER_JAVA_OPTIONS), (), False),
        (("spark.sql.x", "spark.jars.packages"), (), True),
        (("spark.driver.extraClassPath",), (), True),
        (("spark.an.unknown.key",), (), True),
        ((), ("SPARK_CONF_DIR",), True),
        ((), ("HADOOP_CONF_DIR",), True),
        ((), ("PYSPARK_SUBMIT_ARGS",), True),
    ],
)
def test_spark_submit_is_left_out_only_if_it_has_nothing_to_do(
    settings: tuple[str, ...], variables: tuple[str, ...], is_needed: bool
) -> None:
    assert needs_spark_submit(settings, variables) is is_needed


@pytest.mark.parametrize("name", ["spark-defaults.conf", "spark-env.sh"])
def test_files_that_only_spark_submit_reads_are_noticed(tmp_path: Path, name: str) -> None:
    (tmp_path / "conf").mkdir()
    assert not has_submit_files(tmp_path)
    (tmp_path / "conf" / name).touch()
    assert has_submit_files(tmp_path)

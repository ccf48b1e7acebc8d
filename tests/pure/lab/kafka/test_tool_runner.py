"""A tool's main class is looked up in the jars of its version."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from sparkmirror.errors import LabError
from sparkmirror.lab.kafka.jvm_options import JvmOptions, log4j_options
from sparkmirror.lab.kafka.kafka_tool_table import find_tool
from sparkmirror.lab.kafka.tool_runner import find_main_class


def _jars(directory: Path, version: str, *classes: str) -> Path:
    with zipfile.ZipFile(directory / f"kafka-tools-{version}.jar", "w") as jar:
        for name in classes:
            jar.writestr(f"{name.replace('.', '/')}.class", b"")
    return directory


@pytest.mark.parametrize(
    "main", ["kafka.admin.AclCommand", "org.apache.kafka.tools.AclCommand"], ids=["old", "new"]
)
def test_main_class_is_the_one_in_the_jars(tmp_path: Path, main: str) -> None:
    jars = _jars(tmp_path, "1.2.3", main)
    assert find_main_class(find_tool("kafka-acls"), jars, "1.2.3") == main


def test_error_names_a_tool_that_the_version_lacks(tmp_path: Path) -> None:
    jars = _jars(tmp_path, "3.9.2", "kafka.admin.AclCommand")
    with pytest.raises(LabError, match="^Kafka 3.9.2 has no kafka-groups: choose another version"):
        find_main_class(find_tool("kafka-groups"), jars, "3.9.2")


def test_command_has_a_heap_limit_and_options_for_a_fast_start() -> None:
    command = JvmOptions(heap_mb=100).command(Path("/j/java"), Path("/jars"), "4.3.1", "a.Main")
    assert command[0] == "/j/java"
    assert {"-Xmx100m", "-XX:TieredStopAtLevel=1", "-Xshare:auto"} <= set(command)
    assert command[-3:] == ["-cp", "/jars/*", "a.Main"]


def test_command_without_fast_start_has_no_tiered_options() -> None:
    command = JvmOptions(fast_start=False).command(Path("java"), Path("/jars"), "4.3.1", "a.Main")
    assert not any("Tiered" in word for word in command)


def test_only_a_fast_start_uses_a_class_archive_and_other_options_may_override_it() -> None:
    archive = ("-XX:SharedArchiveFile=a.jsa",)

    def words(jvm: JvmOptions) -> list[str]:
        return jvm.command(Path("java"), Path("/jars"), "4.3.1", "a.Main", archive)

    fast = words(JvmOptions(extra_options=("-Dlast",)))
    assert fast.index(*archive) < fast.index("-Dlast")
    assert archive[0] not in words(JvmOptions(fast_start=False))


@pytest.mark.parametrize(
    ("version", "key"),
    [("4.0.0", "-Dlog4j2.configurationFile="), ("3.9.2", "-Dlog4j.configuration=file:")],
    ids=["log4j2", "log4j1"],
)
def test_logging_is_configured_by_a_file_that_exists(version: str, key: str) -> None:
    chosen, level = log4j_options(version, "INFO")
    assert chosen.startswith(key)
    assert Path(chosen.removeprefix(key)).is_file()
    assert level == "-Dlab.log.level=INFO"


def test_heap_and_options_of_kafkas_variables_come_last() -> None:
    environ = {"KAFKA_HEAP_OPTS": "-Xmx1g -Xms1g", "KAFKA_OPTS": "-Dname='a b'"}
    command = JvmOptions.from_environment(environ).command(
        Path("java"), Path("/j"), "4.3.1", "Main"
    )
    assert command[-6:-3] == ["-Xmx1g", "-Xms1g", "-Dname=a b"]
    assert JvmOptions.from_environment({}) == JvmOptions()

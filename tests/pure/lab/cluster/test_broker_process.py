"""One broker's files and command, without starting it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.lab.cluster.broker_process import BrokerProcess, broker_command
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec
from sparkmirror.lab.cluster.storage import random_uuid
from sparkmirror.lab.processes.process_reaper import ProcessReaper


def format_data_directory(data: Path) -> None:
    data.mkdir()
    (data / "meta.properties").touch()


@pytest.fixture
def broker(tmp_path: Path) -> BrokerProcess:
    return BrokerProcess(
        "west/1",
        tmp_path / "broker-1",
        command=lambda: ["false"],
        format_data=format_data_directory,
        reaper=ProcessReaper.detached(),
    )


def test_broker_that_never_started_has_no_pid(broker: BrokerProcess) -> None:
    assert broker.pid is None
    broker.kill()
    broker.pause()


def test_prepare_formats_once_and_writes_properties_each_time(broker: BrokerProcess) -> None:
    broker.prepare({"node.id": "1"})
    (broker.data_directory / "record").touch()
    broker.prepare({"node.id": "1", "x": "y"})
    assert (broker.data_directory / "record").exists()
    assert (broker.data_directory.parent / "server.properties").read_text() == "node.id=1\nx=y\n"


def test_wipe_leaves_an_empty_formatted_directory(broker: BrokerProcess) -> None:
    broker.prepare({})
    (broker.data_directory / "record").touch()
    broker.wipe()
    assert [file.name for file in broker.data_directory.iterdir()] == ["meta.properties"]


def test_failure_contains_errors_and_no_other_log_lines(broker: BrokerProcess) -> None:
    broker.prepare({})
    broker.log_file.write_text(
        "[2026-01-01] INFO starting (a.B)\n"
        "[2026-01-01] ERROR fatal error (a.B)\n"
        "java.lang.IllegalStateException: no disk\n"
        "\tat a.B.method(B.java:1) SomeException\n"
        "[2026-01-01] INFO stopped (a.B)\n"
    )
    message = str(broker.failure("ended"))
    assert message.startswith("west/1 ended. From ")
    assert message.endswith("ERROR fatal error (a.B)\njava.lang.IllegalStateException: no disk")


def test_bind_failure_of_an_earlier_start_is_ignored(broker: BrokerProcess) -> None:
    broker.prepare({})
    broker.log_file.write_text("[2026-01-01] ERROR Address already in use, in an earlier start\n")
    assert broker.failed_to_bind()
    broker.launch()
    broker.kill()
    assert not broker.failed_to_bind()


def test_fast_start_limits_the_compiler() -> None:
    def command_line(fast_start: bool) -> str:
        spec = ClusterSpec(name="west", heap="1g", fast_start=fast_start)
        return " ".join(broker_command(Path("java"), "jars/*", spec, Path("/labs/west/broker-1")))

    assert "-XX:TieredStopAtLevel=1" in command_line(True)
    assert "-XX:TieredStopAtLevel" not in command_line(False)
    assert "-XX:+UseG1GC" in command_line(False)
    for command in (command_line(True), command_line(False)):
        assert "-Xmx1g" in command
        assert "-Djava.io.tmpdir=/labs/west/broker-1/tmp" in command
        assert command.endswith("kafka.Kafka /labs/west/broker-1/server.properties")


def test_the_options_of_a_class_archive_are_among_those_of_the_jvm() -> None:
    spec = ClusterSpec(name="west", jvm_options=("-Dlast=1",))
    options = ("-XX:SharedArchiveFile=/cache/a b.jsa",)
    command = broker_command(Path("java"), "jars/*", spec, Path("/labs/west"), options)
    assert command.index(*options) < command.index("-Dlast=1") < command.index("-cp")


def test_random_uuid_has_the_form_of_kafka() -> None:
    ids = {random_uuid() for _ in range(200)}
    assert len(ids) == 200
    assert all(len(text) == 22 and not text.startswith("-") for text in ids)

"""A start refuses what `config validate` refuses: same table, nothing started, nothing written."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import pytest
from click.testing import CliRunner

from sparkmirror.cli import kafka_scripts, main
from sparkmirror.cli.config.command import config
from sparkmirror.cli.config.start_validation import require_valid_dedicated_file
from sparkmirror.config.files.properties import parse_properties

FLOWS = """clusters = A, B, C
A.bootstrap.servers = {address}
B.bootstrap.servers = {address}
C.bootstrap.servers = {address}
A->B.enabled = true
emit.heartbeats.enabled = false
"""
WORKER = """bootstrap.servers = {address}
group.id = mirrors
config.storage.topic = c
offset.storage.topic = o
status.storage.topic = s
key.converter = org.apache.kafka.connect.converters.ByteArrayConverter
value.converter = org.apache.kafka.connect.converters.ByteArrayConverter
"""
FAULTS_OF_FLOWS = {
    "connector": "A->B.topics = (\ntasks.max = two\n",
    "worker of a flow": "B.status.storage.partitions = none\n",
    "client": "A.security.protocol = FOO\n",
    "process": "sparkmirror.epoch.seconds = 0\n",
    "listener": "listeners = ftp://x:1\n",
    "start": "A.security.protocol = SASL_SSL\nA.sasl.mechanism = NOPE\n",
    "provider": "config.providers = v\nconfig.providers.v.class = com.example.Vault\n",
}
FAULTS_OF_WORKERS = {
    "worker": "heartbeat.interval.ms = x\n",
    "listener": "listeners = ftp://x:1\n",
    "start": "security.protocol = SASL_SSL\nsasl.mechanism = NOPE\n",
    "process": "sparkmirror.epoch.seconds = 0\n",
}


@pytest.fixture
def broker() -> Iterator[socket.socket]:
    """A socket in place of a broker: it knows whether a client has connected."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        yield server


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory where a worker would write."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def address(broker: socket.socket) -> str:
    return f"127.0.0.1:{broker.getsockname()[1]}"


def start(monkeypatch: pytest.MonkeyPatch, *words: str) -> int | str | None:
    """Run a command of `sparkmirror` in this process; returns its exit code."""
    monkeypatch.setattr("sys.argv", ["sparkmirror", *words])
    with pytest.raises(SystemExit) as ended:
        main.main()
    return ended.value.code


def validated(*arguments: str) -> str:
    """The table of `config validate`."""
    result = CliRunner().invoke(config, ["validate", *arguments], catch_exceptions=False)
    assert result.exit_code == 1
    return result.output


def assert_nothing_happened(broker: socket.socket, state: Path) -> None:
    with pytest.raises(BlockingIOError):
        broker.accept()
    assert not state.exists()


@pytest.mark.parametrize("level", FAULTS_OF_FLOWS)
def test_run_refuses_faults_of_every_level_with_the_table_of_validate(
    level: str,
    broker: socket.socket,
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = FLOWS.format(address=address(broker)) + FAULTS_OF_FLOWS[level]
    Path("mm2.properties").write_text(text)
    assert start(monkeypatch, "run", "mm2.properties") == 1
    said = capsys.readouterr()
    assert said.out == ""
    table = validated("mm2.properties")
    assert said.err.startswith(table)
    assert said.err.removeprefix(table) == (
        "Error: mm2.properties: nothing was started; correct the lines above, check the file with"
        " sparkmirror config validate mm2.properties, then start again\n"
    )
    assert_nothing_happened(broker, state)


@pytest.mark.parametrize("level", FAULTS_OF_WORKERS)
def test_worker_refuses_faults_of_every_level_with_the_table_of_validate(
    level: str,
    broker: socket.socket,
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = WORKER.format(address=address(broker)) + FAULTS_OF_WORKERS[level]
    Path("worker.properties").write_text(text)
    assert start(monkeypatch, "worker", "worker.properties") == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(validated("worker.properties"))
    assert "sparkmirror config validate worker.properties, then start again" in said.err
    assert_nothing_happened(broker, state)


@pytest.mark.parametrize(
    ("command", "text", "advice"),
    [
        ("run", WORKER, "start it with sparkmirror worker its.properties"),
        ("worker", FLOWS, "start it with sparkmirror run its.properties"),
    ],
)
def test_a_file_of_the_other_command_is_refused_with_that_command(
    command: str,
    text: str,
    advice: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("its.properties").write_text(text.format(address="a:1"))
    assert start(monkeypatch, command, "its.properties") == 1
    assert advice in capsys.readouterr().err


@pytest.mark.parametrize(
    ("script", "text", "arguments"),
    [
        (kafka_scripts.connect_mirror_maker, FLOWS + "tasks.max = two\n", ["its.properties"]),
        (
            kafka_scripts.connect_distributed,
            WORKER + "heartbeat.interval.ms = x\n",
            ["its.properties"],
        ),
        (
            kafka_scripts.kafka_mirror_maker,
            "bootstrap.servers = {address}\nsecurity.protocol = FOO\n",
            [
                *("--consumer.config", "its.properties", "--producer.config", "its.properties"),
                *("--include", "x"),
            ],
        ),
    ],
)
def test_kafkas_scripts_refuse_the_same_with_javas_exit_code(
    script: Callable[[Sequence[str]], NoReturn],
    text: str,
    arguments: Sequence[str],
    broker: socket.socket,
    state: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    Path("its.properties").write_text(text.format(address=address(broker)))
    with pytest.raises(SystemExit) as ended:
        script(arguments)
    assert ended.value.code == kafka_scripts.EXIT_ERROR
    assert "Invalid value" in capsys.readouterr().err
    assert "Stopping due to error: its.properties" in caplog.text
    assert "nothing was started" in caplog.text
    assert_nothing_happened(broker, state)


ACCEPTED = {
    "notices": "A->B.no.such.key = x\nA.ssl.key.password = in plain text\n",
    "a connector that is not enabled": "B->A.topics = (\nB->A.emit.heartbeats.enabled = true\n",
    "a flow that does not run": "A->C.tasks.max = two\n",
}


@pytest.mark.parametrize("what", ACCEPTED)
def test_what_java_can_run_is_not_refused(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = parse_properties((FLOWS.format(address="a:1") + ACCEPTED[what]).encode(), file="f")
    require_valid_dedicated_file(file, (), {})
    assert capsys.readouterr().err == ""


def test_a_node_for_some_clusters_refuses_only_faults_of_their_flows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = FLOWS.format(address="a:1") + "A->C.enabled = true\nA->C.topics = (\n"
    require_valid_dedicated_file(parse_properties(text.encode(), file="f"), ["B"], {})
    Path("mm2.properties").write_text(text)
    assert start(monkeypatch, "run", "mm2.properties", "--clusters", "C") == 1
    said = capsys.readouterr().err
    assert said.startswith(validated("mm2.properties", "--clusters", "C"))
    assert "sparkmirror config validate mm2.properties --clusters C" in said
    assert start(monkeypatch, "run", "mm2.properties", "--clusters", "X") == 1
    assert "No cluster is called X" in capsys.readouterr().err

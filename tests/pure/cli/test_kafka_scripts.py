"""Kafka's scripts: exit codes and errors as Java has them; arguments of MirrorMaker 1."""

from __future__ import annotations

import logging
import signal
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pytest

from sparkmirror.cli.config.start_validation import require_valid_client_files
from sparkmirror.cli.kafka_scripts import (
    connect_distributed,
    connect_mirror_maker,
    kafka_mirror_maker,
)
from sparkmirror.cli.mirror_maker_1 import MirrorMaker1Arguments, mm2_properties
from sparkmirror.config.files.flow_config_precedence import MirrorConnector
from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.errors import BadRequest
from tests.support.golden import golden_json

Script = Callable[[Sequence[str]], NoReturn]
SCRIPTS: Mapping[str, Script] = {
    "MirrorMaker": connect_mirror_maker,
    "ConnectDistributed": connect_distributed,
}
CONNECTED = ("unreachable.properties", "unreachworker.properties", "worker.properties")
"""Java connects to a cluster in these cases. A pure test has no cluster."""


@pytest.fixture(autouse=True)
def restored_process() -> Iterator[None]:
    """Restore the log handlers and the signal handlers that a script replaces."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    signals = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for number, action in signals.items():
        signal.signal(number, action)


def recorded_cases() -> list[Any]:
    cases = golden_json("cli/cli.json")
    return [
        pytest.param(case, id=f"{_main_class(case)}-{'-'.join(case['args']) or 'nothing'}")
        for case in cases
        if not set(case["args"]) & set(CONNECTED)
    ]


def _main_class(case: Mapping[str, Any]) -> str:
    return str(case["main_class"].rpartition(".")[2])


@pytest.mark.parametrize("case", recorded_cases())
def test_bad_input_has_the_exit_code_of_java(
    case: Mapping[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    if case["file_content"] is not None:
        Path(case["args"][0]).write_text(case["file_content"], "utf-8")
    with pytest.raises(SystemExit) as ended:
        SCRIPTS[_main_class(case)](case["args"])
    assert ended.value.code == case["exit_code"]


def test_missing_file_is_reported_on_stderr(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        connect_mirror_maker(["nofile.properties"])
    assert "Insufficient permissions to read file: 'nofile.properties'" in capsys.readouterr().err


FLOWS = """clusters=A,B
A.bootstrap.servers=127.0.0.1:1
B.bootstrap.servers=127.0.0.1:1
A->B.enabled=true
listeners=http://127.0.0.1:0
"""
WORKER = """bootstrap.servers=127.0.0.1:1
group.id=g
config.storage.topic=c
offset.storage.topic=o
status.storage.topic=s
key.converter=org.apache.kafka.connect.converters.ByteArrayConverter
value.converter=org.apache.kafka.connect.converters.ByteArrayConverter
listeners=http://127.0.0.1:0
"""
AGENT = "-javaagent:/opt/jmx_prometheus_javaagent-0.19.0.jar"


@pytest.mark.parametrize(
    ("script", "text"), [(connect_distributed, WORKER), (connect_mirror_maker, FLOWS)]
)
def test_port_of_a_java_agent_is_opened_and_options_of_a_jvm_are_noted(
    script: Script,
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The port is in use, so the start ends with an error that names it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("KAFKA_HEAP_OPTS", "-Xmx1g")
    Path("given.properties").write_text(text, "ascii")
    with socket.create_server(("127.0.0.1", 0)) as used, pytest.raises(SystemExit) as ended:
        port = used.getsockname()[1]
        monkeypatch.setenv("KAFKA_OPTS", f"{AGENT}=127.0.0.1:{port}:kafka-connect.yml")
        script(["given.properties"])
    assert ended.value.code == 2
    lines = capsys.readouterr().out
    listener = f"http://127.0.0.1:{port}"
    assert "WARN KAFKA_HEAP_OPTS has no effect" in lines
    assert f"Metrics are served on {listener}, the address of the Java agent" in lines
    assert f"Stopping due to error: cannot listen on {listener}" in lines


def mirror_maker_1_arguments(*arguments: str) -> MirrorMaker1Arguments:
    return MirrorMaker1Arguments.parse(
        ["--consumer.config", "c", "--producer.config", "p", "--include", "a|b", *arguments]
    )


def test_mirror_maker_1_arguments_become_a_flow_with_the_identity_policy() -> None:
    consumer = {
        "bootstrap.servers": "one:1",
        "group.id": "mirror",
        "security.protocol": "SSL",
        "fetch.min.bytes": "5",
    }
    parsed = MirrorMakerConfig.open(
        mm2_properties(
            mirror_maker_1_arguments("--num.streams", "3"), consumer, {"bootstrap.servers": "two:2"}
        ),
        {},
    )
    (flow,) = parsed.require_flows()
    assert str(flow) == "source->target"
    source = parsed.layered_connector_config(flow, MirrorConnector.SOURCE).props
    assert source["topics"] == "a|b"
    assert source["tasks.max"] == "3"
    assert source["replication.policy.class"].endswith(".IdentityReplicationPolicy")
    assert source["source.cluster.security.protocol"] == "SSL"
    assert source["source.consumer.fetch.min.bytes"] == "5"
    assert source["target.cluster.bootstrap.servers"] == "two:2"
    assert parsed.worker_config(flow)["bootstrap.servers"] == "two:2"
    assert "mirror" not in source.values()


def test_the_flow_of_mirror_maker_1_may_start(capsys: pytest.CaptureFixture[str]) -> None:
    servers = {"bootstrap.servers": "one:1"}
    flow = mm2_properties(mirror_maker_1_arguments(), servers, servers)
    require_valid_client_files(flow, {})
    assert capsys.readouterr().err == ""


def test_whitelist_is_an_alias_of_include() -> None:
    parsed = MirrorMaker1Arguments.parse(
        ["--consumer.config", "c", "--producer.config", "p", "--whitelist", "x"]
    )
    assert parsed.include == "x"


def test_message_handler_is_rejected() -> None:
    with pytest.raises(BadRequest, match=r"--message.handler names Java code"):
        mirror_maker_1_arguments("--message.handler", "com.Handler")


def test_missing_consumer_config_prints_the_usage_and_exits_1(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        kafka_mirror_maker(["--include", "x"])
    assert ended.value.code == 1
    assert "--consumer.config" in capsys.readouterr().err

"""Kafka's scripts by name: what they say and end with on bad input, as the Java ones did."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pytest

from sparkmirror.cli.kafka_scripts import (
    connect_distributed,
    connect_mirror_maker,
    kafka_mirror_maker,
)
from sparkmirror.cli.mirror_maker_1 import MirrorMaker1Arguments, mm2_properties
from sparkmirror.config.files.flow_rules import MirrorConnector
from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.errors import BadRequest
from tests.support.golden import golden_json

Script = Callable[[Sequence[str]], NoReturn]
SCRIPTS: Mapping[str, Script] = {
    "MirrorMaker": connect_mirror_maker,
    "ConnectDistributed": connect_distributed,
}
RUNNING = ("unreachable.properties", "unreachworker.properties", "worker.properties")
"""Recordings in which Java got as far as asking a cluster: `tests/brokers` has those."""


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """What a script does to its process, this one has to live on with: take it back."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    signals = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for number, action in signals.items():
        signal.signal(number, action)


def recorded() -> list[Any]:
    cases = golden_json("cli/cli.json")
    return [
        pytest.param(case, id=f"{_main(case)}-{'-'.join(case['args']) or 'nothing'}")
        for case in cases
        if not set(case["args"]) & set(RUNNING)
    ]


def _main(case: Mapping[str, Any]) -> str:
    return str(case["main_class"].rpartition(".")[2])


@pytest.mark.parametrize("case", recorded())
def test_bad_input_ends_as_recorded(
    case: Mapping[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    if case["file_content"] is not None:
        Path(case["args"][0]).write_text(case["file_content"], "utf-8")
    with pytest.raises(SystemExit) as ended:
        SCRIPTS[_main(case)](case["args"])
    assert ended.value.code == case["exit_code"]


def test_what_is_wrong_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        connect_mirror_maker(["nofile.properties"])
    assert "Insufficient permissions to read file: 'nofile.properties'" in capsys.readouterr().err


def legacy(*more: str) -> MirrorMaker1Arguments:
    return MirrorMaker1Arguments.parse(
        ["--consumer.config", "c", "--producer.config", "p", "--include", "a|b", *more]
    )


def test_the_old_script_becomes_a_flow_with_equal_names() -> None:
    consumer = {
        "bootstrap.servers": "one:1",
        "group.id": "mirror",
        "security.protocol": "SSL",
        "fetch.min.bytes": "5",
    }
    flow = MirrorMakerConfig.open(
        mm2_properties(legacy("--num.streams", "3"), consumer, {"bootstrap.servers": "two:2"}), {}
    )
    (only,) = flow.require_flows()
    assert str(only) == "source->target"
    source = flow.layered_connector_config(only, MirrorConnector.SOURCE).props
    assert source["topics"] == "a|b"
    assert source["tasks.max"] == "3"
    assert source["replication.policy.class"].endswith(".IdentityReplicationPolicy")
    assert source["source.cluster.security.protocol"] == "SSL"
    assert source["source.consumer.fetch.min.bytes"] == "5"
    assert source["target.cluster.bootstrap.servers"] == "two:2"
    assert flow.worker_config(only)["bootstrap.servers"] == "two:2"
    assert "mirror" not in source.values()


def test_the_older_name_of_a_flag_counts() -> None:
    parsed = MirrorMaker1Arguments.parse(
        ["--consumer.config", "c", "--producer.config", "p", "--whitelist", "x"]
    )
    assert parsed.include == "x"


def test_java_code_is_refused() -> None:
    with pytest.raises(BadRequest, match=r"--message.handler names Java code"):
        legacy("--message.handler", "com.Handler")


def test_a_missing_file_ends_the_old_script_with_its_usage(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        kafka_mirror_maker(["--include", "x"])
    assert ended.value.code == 1
    assert "--consumer.config" in capsys.readouterr().err

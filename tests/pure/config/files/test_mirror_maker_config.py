"""mm2.properties compiles to the flows and configs that Java's MirrorMaker 2 makes of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sparkmirror.config.client_configs import ClientType
from sparkmirror.config.definition.value_types import ParsedValue, convert_to_string
from sparkmirror.config.files.flow_config_precedence import MirrorConnector
from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.config.files.properties import Properties, PropertyEntry, parse_properties
from sparkmirror.config.notices import NoticeKind
from sparkmirror.config.secrets.password import Password
from sparkmirror.errors import ConfigError
from sparkmirror.model import SourceAndTarget
from tests.support.golden import GOLDEN, golden_json, golden_lines

RECORDED: dict[str, Any] = golden_json("vectors/mirror-maker-config.json")
CORPUS: list[dict[str, Any]] = golden_json("corpus/dedicated.json")
GOOD = [case for case in RECORDED["cases"] if "error" not in case["result"]]
BAD = [case for case in RECORDED["cases"] if "error" in case["result"]]
A_TO_B = SourceAndTarget("A", "B")
TWO = "clusters=A,B\nA.bootstrap.servers=a:1\nB.bootstrap.servers=b:1\n"


def opened(text: str, environment: dict[str, str] | None = None) -> MirrorMakerConfig:
    return MirrorMakerConfig.open(
        parse_properties(text.encode("latin-1"), file="mm2.properties"), environment or {}
    )


def name(case: dict[str, Any]) -> str:
    return str(case["name"]).replace(" ", "-")


@pytest.fixture
def secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that the recorded cases read, in the current directory."""
    for file, text in RECORDED["files"].items():
        (tmp_path / file).write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("secrets")
@pytest.mark.parametrize("case", GOOD, ids=name)
def test_flows_workers_and_connectors_are_as_recorded(case: dict[str, Any]) -> None:
    found, expected = opened(case["properties"]), case["result"]
    assert sorted(found.clusters) == expected["clusters"]
    assert found.internal_rest_enabled == expected["internal_rest"]
    assert sorted(map(str, found.flows())) == expected["flows"]
    assert sorted(map(str, found.cluster_pairs)) == sorted(expected["per_pair"])
    for pair in found.cluster_pairs:
        recorded = expected["per_pair"][str(pair)]
        assert found.worker_config(pair) == recorded["worker"]
        for connector in MirrorConnector:
            assert (
                found.layered_connector_config(pair, connector).props
                == recorded[connector.simple_name]
            )


@pytest.mark.usefixtures("secrets")
@pytest.mark.parametrize("case", GOOD, ids=name)
def test_clusters_and_their_clients_are_as_recorded(case: dict[str, Any]) -> None:
    found = opened(case["properties"])
    for alias, recorded in case["result"]["per_cluster"].items():
        assert found.layered_cluster_config(alias).props == recorded["cluster_props"]
        for kind in ClientType:
            assert client(found, alias, kind) == recorded[f"client_{kind}"]


def client(found: MirrorMakerConfig, alias: str, kind: str) -> dict[str, Any]:
    try:
        config = found.client_config(alias, kind)
    except ConfigError as error:
        kind_of_error = "org.apache.kafka.common.config.ConfigException"
        return {"error": kind_of_error, "message": str(error)}
    return {key: as_recorded(value) for key, value in config.items()}


def as_recorded(value: ParsedValue) -> Any:
    match value:
        case Password():
            return f"PASSWORD:{value.value}"
        case tuple():
            return list(value)
        case _:
            return convert_to_string(value)


@pytest.mark.parametrize("case", BAD, ids=name)
def test_a_bad_file_is_refused_in_kafkas_words(case: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as raised:
        opened(case["properties"]).process_config()
    assert str(raised.value) == case["result"]["message"]


def test_random_files_compile_as_in_java() -> None:
    for case in CORPUS:
        entries = [
            PropertyEntry(key, value, line) for line, (key, value) in enumerate(case["raw"].items())
        ]
        found = MirrorMakerConfig.open(Properties("x", tuple(entries), ()), {})
        assert sorted(map(str, found.flows())) == case["flows"], case["raw"]
        for pair in found.cluster_pairs:
            recorded = case["per_pair"][str(pair)]
            assert found.worker_config(pair) == recorded["worker"], case["raw"]
            source = found.layered_connector_config(pair, MirrorConnector.SOURCE)
            assert source.props == recorded["MirrorSourceConnector"], case["raw"]


@pytest.mark.parametrize(
    ("lines", "flows"),
    [
        ("", ["A->B", "B->A"]),
        ("A->B.enabled=true\nemit.heartbeats.enabled=false", ["A->B"]),
        ("A->B.enabled=TRUE\nemit.heartbeats.enabled=no", ["A->B"]),
        ("A->B.enabled=true \nemit.heartbeats.enabled=false", []),
        ("A->B.emit.heartbeats.enabled=true\nemit.heartbeats.enabled=false", ["A->B"]),
        ("A->B.emit.heartbeats.enabled=x", ["B->A"]),
        ("enabled=true\nemit.heartbeats.enabled=false", []),
    ],
)
def test_a_flow_runs_if_it_or_its_heartbeats_are_enabled(lines: str, flows: list[str]) -> None:
    assert sorted(map(str, opened(TWO + lines).flows())) == flows


def test_a_node_may_serve_some_targets_only() -> None:
    found = opened("clusters=A,B,C\n")
    assert sorted(map(str, found.flows(["B"]))) == ["A->B", "C->B"]
    assert len(found.flows(["B", "C"])) == 4


@pytest.mark.parametrize(
    ("text", "targets", "advice"),
    [
        ("clusters=", [], "needs two clusters"),
        ("clusters=A", [], "needs two clusters"),
        (TWO, ["X"], "No cluster is called X"),
        (TWO + "emit.heartbeats.enabled=false", [], "A->B.enabled=true"),
    ],
)
def test_a_file_without_flows_is_refused_in_kafkas_words(
    text: str, targets: list[str], advice: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        opened(text).require_flows(targets)
    assert "No source->target replication flows." in str(raised.value)
    assert advice in str(raised.value)


def test_connectors_keep_placeholders_and_workers_do_not() -> None:
    lines = """
    config.providers=env
    config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider
    config.providers.env.param.note=${env:PW}
    B.ssl.key.password=${env:PW}
    A->B.enabled=${env:ON}
    emit.heartbeats.enabled=false
    """
    found = opened(TWO + lines, {"PW": "hunter2", "ON": "true"})
    assert list(map(str, found.flows())) == ["A->B"]
    source = found.layered_connector_config(A_TO_B, MirrorConnector.SOURCE)
    assert source["target.cluster.ssl.key.password"].value == "${env:PW}"
    worker = found.worker_config(A_TO_B)
    assert worker["ssl.key.password"] == worker["producer.ssl.key.password"] == "hunter2"
    assert worker["config.providers.env.param.note"] == "${env:PW}"


def test_clients_of_a_cluster_may_have_different_settings() -> None:
    found = opened(f"{TWO}B.producer.security.protocol=SSL\nB.security.protocol=PLAINTEXT\n")
    worker = found.worker_config(A_TO_B)
    assert worker["producer.security.protocol"] == "SSL"
    assert worker["consumer.security.protocol"] == "PLAINTEXT"


def test_a_secret_is_read_again_for_each_worker_config(tmp_path: Path) -> None:
    file = tmp_path / "s.properties"
    file.write_text("pw=one")
    found = opened(
        f"{TWO}config.providers=f\nB.ssl.key.password=${{f:{file}:pw}}\nconfig.providers.f.class="
        "org.apache.kafka.common.config.provider.FileConfigProvider"
    )
    first = found.worker_config(A_TO_B)["ssl.key.password"]
    file.write_text("pw=two")
    assert (first, found.worker_config(A_TO_B)["ssl.key.password"]) == ("one", "two")


def test_a_value_from_a_provider_is_not_quoted_in_an_error() -> None:
    lines = """
    config.providers=env
    config.providers.env.class=EnvVarConfigProvider
    security.protocol=${env:PW}
    A.ssl.enabled.protocols=${env:PW}
    """
    found = opened(TWO + lines, {"PW": "hunter2,hunter2,,"})
    with pytest.raises(ConfigError) as raised:
        found.process_config()
    assert "${env:PW}" in str(raised.value)
    assert "hunter2" not in str(raised.value)


def test_a_deprecated_key_is_read_as_its_successor_and_keeps_its_line() -> None:
    found = opened(TWO + "A->B.topics.blacklist=x\ntopics.exclude=y\n")
    setting = found.layered_connector_config(A_TO_B, MirrorConnector.SOURCE)["topics.exclude"]
    assert setting.value == "x"
    assert (setting.origin.key, setting.origin.line) == ("A->B.topics.blacklist", 4)
    assert [notice.kind for notice in found.notices] == [NoticeKind.DEPRECATED_KEY]


def test_opening_a_file_with_an_unknown_provider_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"config\.providers\.v\.class"):
        opened(TWO + "config.providers=v\nconfig.providers.v.class=com.example.Vault\n")


def test_no_repr_shows_a_value() -> None:
    found = opened(TWO + "A.ssl.key.password=hunter2\n")
    layers = found.layered_cluster_config("A")
    assert "hunter2" not in repr(found) + repr(layers) + repr(layers["ssl.key.password"])
    assert "hunter2" not in repr(found.file_values)


def test_a_recorded_run_stored_the_connectors_that_its_file_compiles_to() -> None:
    file = GOLDEN / "topics/dedicated-mode.mm2.properties"
    found = MirrorMakerConfig.open(parse_properties(file.read_bytes(), file=file.name), {})
    stored = {
        record["key_text"]: json.loads(record["value_text"])["properties"]
        for record in golden_lines("topics/dedicated-mode.connect-topics.jsonl")
        if record["topic"] == "mm2-configs.A.internal"
        and record["key_text"].startswith("connector-")
    }
    assert stored == {
        f"connector-{connector.simple_name}": found.layered_connector_config(
            A_TO_B, connector
        ).props
        for connector in MirrorConnector
    }


OWN = "A.bootstrap.servers=a:1\nsparkmirror.on.loss=skip\nspark.sasl.jaas.config=x\n"


def test_sparkmirror_keys_reach_the_source_connector_and_the_process() -> None:
    file = opened(f"clusters=A,B\n{OWN}A->B.sparkmirror.bytes.per.second=7\n")
    config = file.layered_connector_config(A_TO_B, MirrorConnector.SOURCE).props
    assert config["sparkmirror.on.loss"] == "skip"
    assert config["sparkmirror.bytes.per.second"] == "7"
    assert file.engine_config() == {"spark.sasl.jaas.config": "x"}


def test_keys_of_a_cluster_called_spark_are_not_settings_of_spark() -> None:
    assert opened(f"clusters=A,spark\n{OWN}").engine_config() == {}

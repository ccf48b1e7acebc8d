"""Connector JSON is validated as the REST API of a worker would validate it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sparkmirror.cli.config.command import config
from sparkmirror.cli.config.connector_json_validation import ConnectorWorker
from sparkmirror.connect.herder.config_validator import ConfigValidator
from sparkmirror.errors import BadRequest, ConfigError, PropertiesError

SOURCE = {
    "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
    "source.cluster.alias": "A",
    "target.cluster.alias": "B",
    "source.cluster.bootstrap.servers": "a:1",
    "target.cluster.bootstrap.servers": "b:1",
    "tasks.max": 2,
}
NAMED = {**SOURCE, "name": "mirror"}
WORKER = """bootstrap.servers=b:1
group.id=g
config.storage.topic=c
offset.storage.topic=o
status.storage.topic=s
key.converter=org.apache.kafka.connect.converters.ByteArrayConverter
value.converter=org.apache.kafka.connect.converters.ByteArrayConverter
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "connectors.json"


def run(file: Path, value: object, *options: str | Path) -> Result:
    file.write_text(value if isinstance(value, str) else json.dumps(value, indent=1))
    arguments = ["validate", str(file), *map(str, options)]
    return CliRunner().invoke(config, arguments, catch_exceptions=False)


def report(file: Path, value: object, *options: str | Path) -> dict[str, Any]:
    result = run(file, value, "--format", "json", *options)
    found: dict[str, Any] = json.loads(result.output)
    assert result.exit_code == bool(found["faults"])
    return found


def faults(file: Path, value: object, *options: str | Path) -> list[tuple[str, str]]:
    return [(one["key"], one["message"]) for one in report(file, value, *options)["faults"]]


@pytest.mark.parametrize(
    "value",
    [
        {"name": "mirror", "config": SOURCE},
        {"name": "mirror", "config": SOURCE, "initial_state": "PAUSED"},
        NAMED,
        {"mirror": SOURCE, "other": SOURCE},
        {"mirror": {"info": {"name": "mirror", "config": NAMED, "tasks": [], "type": "source"}}},
        [{"name": "mirror", "config": SOURCE}, NAMED],
    ],
    ids=["create", "initial state", "config", "by name", "expanded", "list"],
)
def test_every_form_of_a_valid_connector_has_no_findings(file: Path, value: object) -> None:
    result = run(file, value)
    assert result.output == f"{file}: no faults, no notices.\n"
    assert result.exit_code == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"tasks.max": 0},
        {"tasks.max": "x", "replication.factor": "y", "topics": "a["},
        {"exactly.once.support": "required"},
        {"transforms": "t"},
        {"transforms": "t", "transforms.t.type": "RegexRouter"},
        {"sparkmirror.transform.value.format": "avro"},
        {"sparkmirror.errors.deadletterqueue.topic.name": "dead"},
        {"source.cluster.alias": None},
    ],
)
def test_faults_are_those_of_the_rest_api(file: Path, changes: dict[str, Any]) -> None:
    expected = {key: None if v is None else str(v) for key, v in {**NAMED, **changes}.items()}
    with pytest.raises(BadRequest) as raised:
        ConfigValidator(ConnectorWorker().capabilities, {}).require_valid(expected)
    found = faults(file, {**NAMED, **changes})
    lines = str(raised.value).splitlines()[1:-1]
    assert sorted(message for _, message in found) == sorted(lines)
    assert all(key in changes or key.startswith("transforms.t.") for key, _ in found)


def test_table_has_line_key_fault_and_connector(file: Path) -> None:
    result = run(file, {"name": "mirror", "config": {**SOURCE, "offset.lag.max": "x"}})
    assert result.exit_code == 1
    (row,) = [line.split() for line in result.output.splitlines() if "Not a number" in line]
    assert row[:2] == ["10", "offset.lag.max"]
    assert row[-1] == "mirror"
    assert "1 fault, no notices." in result.output


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("{", "is not JSON"),
        ("[1]", "an object was expected, not a number"),
        ({"name": "x", "config": SOURCE, "extra": 1}, 'Unrecognized field "extra"'),
        ({"name": "x", "config": NAMED}, "doesn't match connector name in the URL (x)"),
        ({"name": "x", "config": {"a": []}}, "a text, a number or a boolean was expected"),
        ({"tasks.max": 1}, "contains no connector type"),
        ({"name": "x", "connector.class": "com.example.Sink"}, "Failed to find any class"),
    ],
)
def test_json_that_the_rest_api_rejects_is_one_fault(
    file: Path, value: object, message: str
) -> None:
    ((_, found),) = faults(file, value)
    assert message in found


def test_malformed_connector_does_not_hide_faults_of_another(file: Path) -> None:
    found = report(file, [{"config": {"a": []}}, {**NAMED, "tasks.max": 0}])["faults"]
    assert [one["places"] for one in found] == [["connector 1"], ["mirror"]]


def test_numbers_keep_their_digits(file: Path) -> None:
    (key, message), *_ = faults(file, json.dumps(NAMED).replace(": 2", ": 2.50"))
    assert key == "tasks.max"
    assert "Invalid value 2.50 " in message


def test_worker_file_decides_about_exactly_once_and_client_overrides(
    file: Path, tmp_path: Path
) -> None:
    worker = tmp_path / "worker.properties"
    value = {
        **NAMED,
        "exactly.once.support": "required",
        "consumer.isolation.level": "read_committed",
    }
    assert [key for key, _ in faults(file, value)] == ["exactly.once.support"]
    worker.write_text(f"{WORKER}exactly.once.source.support=enabled\n")
    assert faults(file, value, "--worker", worker) == []
    worker.write_text(f"{WORKER}connector.client.config.override.policy=None\n")
    value = {**NAMED, "producer.override.acks": "all"}
    ((key, _),) = faults(file, value, "--worker", worker)
    assert key == "producer.override.acks"


def test_placeholders_are_replaced_by_the_providers_of_the_worker_file(
    file: Path, tmp_path: Path
) -> None:
    secrets = tmp_path / "s.properties"
    secrets.write_text("n=hunter2")
    value = {**NAMED, "tasks.max": f"${{file:{secrets}:n}}"}
    (notice,) = report(file, value)["notices"]
    assert "config.providers names no provider 'file'" in notice["message"]
    worker = tmp_path / "worker.properties"
    provider = "org.apache.kafka.common.config.provider.FileConfigProvider"
    worker.write_text(f"{WORKER}config.providers=file\nconfig.providers.file.class={provider}\n")
    ((key, message),) = faults(file, value, "--worker", worker)
    assert key == "tasks.max"
    assert "what the provider gives for it will not do" in message
    assert "hunter2" not in run(file, value, "--worker", worker).output


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        (
            {"source.consumer.security.protocol": "SASL_SSL",
             "source.consumer.sasl.mechanism": "NOVEL"},
            "source.consumer.sasl.mechanism",
        ),
        (
            {"source.cluster.security.protocol": "SSL",
             "source.cluster.ssl.truststore.location": "/no/such.jks"},
            "source.cluster.ssl.truststore.location",
        ),
        (
            {"transforms": "t", "transforms.t.type": "TimestampConverter$Value",
             "transforms.t.target.type": "string"},
            "transforms",
        ),
    ],
)  # fmt: skip
def test_setting_that_fails_at_start_is_a_notice(
    file: Path, changes: dict[str, str], key: str
) -> None:
    found = report(file, {**NAMED, **changes})
    assert found["faults"] == []
    assert key in [n["key"] for n in found["notices"] if n["kind"] == "fails at start"]
    disabled = report(file, {**NAMED, **changes, "enabled": "false"})
    assert "fails at start" not in [n["kind"] for n in disabled["notices"]]


def test_a_key_that_no_transformation_reads_is_a_notice(file: Path) -> None:
    value = {
        **NAMED,
        "transforms": "t",
        "transforms.t.type": "RegexRouter",
        "transforms.t.regex": "a",
        "transforms.t.replacement": "b",
        "transforms.t.regx": "c",
        "sparkmirror.transform.value.format": "json",
    }
    found = report(file, value)
    assert found["faults"] == []
    (notice,) = [one for one in found["notices"] if one["kind"] == "no effect"]
    assert notice["key"] == "transforms.t.regx"
    assert "did you mean transforms.t.regex?" in notice["message"]


def test_retired_unknown_and_secret_keys_are_notices(file: Path) -> None:
    value = {**NAMED, "topics.blacklist": "x", "tasks.maxx": "1", "ssl.key.password": "hunter2"}
    result = run(file, value, "--format", "json")
    assert [n["kind"] for n in json.loads(result.output)["notices"]] == [
        "retired key",
        "no effect",
        "in plain text",
        "no effect",
    ]
    assert "did you mean tasks.max?" in result.output
    assert "hunter2" not in result.output


def test_connector_json_has_no_flows(file: Path) -> None:
    run(file, NAMED)
    for command in ("flows", "explain"):
        with pytest.raises(PropertiesError, match="is JSON and has no flows"):
            CliRunner().invoke(config, [command, str(file)], catch_exceptions=False)


def test_worker_option_is_only_for_connector_json(file: Path, tmp_path: Path) -> None:
    result = run(file, WORKER, "--worker", tmp_path / "w")
    assert result.exit_code == 2
    with pytest.raises(ConfigError, match="there is no such file"):
        run(file, NAMED, "--worker", tmp_path / "none")

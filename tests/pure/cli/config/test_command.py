"""`sparkmirror config`: flows, explain and validate, as text and as JSON."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sparkmirror.cli.config.command import config
from sparkmirror.errors import ConfigError, PropertiesError

FILE = """clusters=A,B
A.bootstrap.servers=a:1
B.bootstrap.servers=b:1
A->B.enabled=true
A->B.topics=[a-z].*
tasks.max=2
A->B.tasks.max=4
B.ssl.key.password=hunter2
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mm2.properties"
    path.write_text(FILE)
    path.chmod(0o600)
    return path


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(config, list(map(str, arguments)), catch_exceptions=False)


def run_json(*arguments: str | Path) -> Any:
    return json.loads(run(*arguments, "--format", "json").output)


def rows(text: str) -> list[list[str]]:
    """The words of each line."""
    return [line.split() for line in text.splitlines() if line.strip()]


def test_flows_lists_flows_with_their_connectors(file: Path) -> None:
    result = run("flows", file)
    assert result.exit_code == 0
    unchanged = ["unchanged:", "no", "transformation"]
    assert ["A->B", "source,", "checkpoint,", "heartbeat", "A-mm2", "4", *unchanged] in rows(
        result.output
    )
    assert ["B->A", "heartbeat", "B-mm2", "2", "-"] in rows(result.output)


@pytest.mark.parametrize(
    ("options", "flows"),
    [
        (["--clusters", "B"], ["A->B"]),
        (["--clusters", "A", "B"], ["A->B", "B->A"]),
        (["--clusters", "A", "--clusters", "B"], ["A->B", "B->A"]),
        (["--clusters=B"], ["A->B"]),
    ],
)
def test_clusters_option_selects_flows_by_target(
    file: Path, options: list[str], flows: list[str]
) -> None:
    found = run_json("flows", file, *options)
    assert [f"{flow['source']}->{flow['target']}" for flow in found] == flows


def test_flows_prints_json(file: Path) -> None:
    assert run_json("flows", file)[1] == {
        "source": "B",
        "target": "A",
        "connectors": {"source": False, "checkpoint": False, "heartbeat": True},
        "records": None,
    }


MASK = """A->B.transforms=mask
A->B.transforms.mask.type=org.apache.kafka.connect.transforms.MaskField$Value
A->B.transforms.mask.fields=ssn
"""


def test_flows_and_explain_say_how_far_records_are_opened(file: Path) -> None:
    file.write_text(FILE + MASK)
    assert "records: mask needs values" in run("flows", file).output
    assert run_json("flows", file)[0]["records"] == {
        "lane": "records",
        "reason": "mask needs values",
    }
    explained = run("explain", file, "transforms", "--flow", "A->B", "--connector", "source")
    assert "  lane records: mask needs values" in explained.output
    file.write_text(FILE + "A->B.transforms=${file:/secret:name}\n")
    assert "unknown: see sparkmirror config validate" in run("flows", file).output
    assert run_json("flows", file)[0]["records"] is None


def test_extra_argument_is_rejected(file: Path) -> None:
    result = run("flows", file, "B")
    assert result.exit_code == 2
    assert "unexpected extra argument" in result.output


def test_flows_fails_without_a_flow(file: Path) -> None:
    with pytest.raises(ConfigError, match="No source->target replication flows"):
        run("flows", file, "--clusters", "X")


def test_explain_prints_the_line_and_the_overridden_values_of_a_setting(file: Path) -> None:
    result = run("explain", file, "tasks.max", "--flow", "A->B", "--connector", "source")
    assert result.output.splitlines() == [
        "A->B source: tasks.max = 4",
        "  set for the flow, line 7: A->B.tasks.max",
        "  instead of 2  (set for all flows, line 6: tasks.max)",
        "  instead of 1  (default)",
    ]


def test_explain_lists_the_settings_that_a_key_of_the_file_sets(file: Path) -> None:
    found = run_json("explain", file, "B.ssl.key.password", "--connector", "worker")
    assert {(one["flow"], one["key"]) for one in found} == {
        ("A->B", "ssl.key.password"),
        ("A->B", "admin.ssl.key.password"),
        ("A->B", "consumer.ssl.key.password"),
        ("A->B", "producer.ssl.key.password"),
    }
    assert {one["line"] for one in found} == {8}


def test_explain_hides_secrets_and_keeps_brackets(file: Path) -> None:
    result = run("explain", file)
    assert result.exit_code == 0
    assert "hunter2" not in result.output + run("explain", file, "--format", "json").output
    assert "[hidden]" in result.output
    assert "[a-z].*" in result.output
    assert "A->B worker" in result.output
    assert "B->A heartbeat" in result.output


def test_explain_prints_json(file: Path) -> None:
    (found,) = run_json("explain", file, "topics", "--flow", "A->B", "--connector", "source")
    assert found == {
        "flow": "A->B",
        "part": "source",
        "key": "topics",
        "value": "[a-z].*",
        "rule": "set for the flow",
        "file_key": "A->B.topics",
        "line": 5,
        "read": True,
        "no_effect": None,
        "overrode": [{"value": ".*", "rule": "default", "file_key": None, "line": None}],
    }


def test_explain_says_that_a_key_of_a_client_has_no_effect(file: Path) -> None:
    file.write_text(FILE + "A.consumer.fetch.min.bytes=1\n")
    result = run("explain", file, "A.consumer.fetch.min.bytes", "--flow", "A->B")
    assert "no effect: it tunes a client of Kafka" in " ".join(result.output.split())
    found = run_json("explain", file, "A.consumer.fetch.min.bytes", "--flow", "A->B")
    assert {one["read"] for one in found} == {False}
    assert all(one["no_effect"] for one in found)
    assert "(no effect)" in run("explain", file).output


def test_explain_suggests_a_name_for_an_unknown_setting(file: Path) -> None:
    with pytest.raises(ConfigError, match=r"did you mean tasks\.max\?"):
        run("explain", file, "task.max")


def test_explain_rejects_a_key_that_reaches_no_flow(file: Path) -> None:
    file.write_text(FILE + "Q.topics=x\n")
    with pytest.raises(ConfigError, match="reaches no flow"):
        run("explain", file, "Q.topics")


def test_explain_lists_the_flows_if_a_flow_is_unknown(file: Path) -> None:
    result = run("explain", file, "topics", "--flow", "A->C")
    assert result.exit_code == 2
    assert "A->B, B->A" in result.output


def test_validate_exits_0_for_a_valid_file(file: Path) -> None:
    file.write_text(FILE.replace("B.ssl.key.password=hunter2\n", ""))
    result = run("validate", file)
    assert result.exit_code == 0
    assert result.output == f"{file}: no faults, no notices.\n"


def test_validate_lists_all_faults_and_exits_1(file: Path) -> None:
    file.write_text(FILE + "replication.factor=x\nB->A.tasks.max=0\nA->B.enable=true\n")
    result = run("validate", file)
    assert result.exit_code == 1
    for text in ("replication.factor", "B->A.tasks.max", "did you mean A->B.enabled?"):
        assert text in result.output
    assert "2 faults, 3 notices." in result.output
    assert "hunter2" not in result.output


def test_validate_prints_json(file: Path) -> None:
    file.write_text(FILE + "replication.factor=x\n")
    found = run_json("validate", file)
    assert found["faults"] == [
        {
            "line": 9,
            "key": "replication.factor",
            "message": "Invalid value x for configuration replication.factor: "
            "Not a number of type INT",
            "places": ["A->B source"],
        }
    ]
    assert [notice["kind"] for notice in found["notices"]] == ["in plain text"]


def test_validate_recognises_a_worker_file(file: Path) -> None:
    file.write_text("bootstrap.servers=b:1\ngroup.id=g\n")
    keys = {fault["key"] for fault in run_json("validate", file)["faults"]}
    assert keys == {
        "key.converter",
        "value.converter",
        "config.storage.topic",
        "offset.storage.topic",
        "status.storage.topic",
    }


def test_flows_rejects_a_worker_file_and_names_validate(file: Path) -> None:
    file.write_text("bootstrap.servers=b:1\ngroup.id=g\n")
    with pytest.raises(ConfigError, match="worker's file .* config validate"):
        run("flows", file)


def test_error_of_an_invalid_file_names_file_and_line(file: Path) -> None:
    file.write_text(FILE + "config.providers=v\nconfig.providers.v.class=com.example.Vault\n")
    with pytest.raises(ConfigError) as raised:
        run("explain", file)
    assert str(raised.value).startswith(f"{file}: line 10: Invalid value com.example.Vault")


def test_explain_escapes_control_characters(file: Path) -> None:
    file.write_text(FILE + "A->B.groups=\\u001b[31mred\\ud800\n")
    assert "\\u001b[31mred\\ud800" in run("explain", file, "groups").output
    assert "\\u001b[31mred\\ud800" in run("explain", file).output
    assert {one["value"] for one in run_json("explain", file, "groups", "--flow", "A->B")} == {
        "\x1b[31mred\ud800"
    }


def test_validate_rejects_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(PropertiesError, match="there is no such file"):
        run("validate", tmp_path / "none")


def test_validate_reads_10_mb_within_8_s_and_shortens_its_table(file: Path) -> None:
    unknown = "".join(f"some.unknown.key.{n}={'x' * 1000}\n" for n in range(10_000))
    file.write_text(FILE + unknown)
    began = time.thread_time()
    assert run("flows", file).exit_code == 0
    result = run("validate", file)
    assert time.thread_time() - began < 8
    assert "... and 9801 more; --format json lists all." in result.output
    assert "no faults, 10001 notices." in result.output


def test_validate_finds_a_token_endpoint_that_the_file_does_not_allow(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KAFKA_OPTS", raising=False)
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    text = FILE + (
        "A.security.protocol=SASL_SSL\n"
        "A.sasl.mechanism=OAUTHBEARER\n"
        f'A.sasl.jaas.config={module} required clientId="me" clientSecret="hunter2";\n'
        "A.sasl.oauthbearer.token.endpoint.url=https://idp.example/token\n"
    )
    file.write_text(text)
    [error] = run_json("validate", file)["faults"]
    assert error["key"] == "A.sasl.oauthbearer.token.endpoint.url"
    assert "sparkmirror.oauthbearer.allowed.urls=https://idp.example/token" in error["message"]
    file.write_text(f"{text}sparkmirror.oauthbearer.allowed.urls=https://idp.example/token\n")
    assert run_json("validate", file)["faults"] == []

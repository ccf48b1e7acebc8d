"""Options and client files make a request, or are refused with a sentence and without secrets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import click
import pytest

from sparkmirror.cli.copy.engine import LaunchOptions
from sparkmirror.cli.copy.plan import make_job, plan_copy
from sparkmirror.cli.copy.request import ClientFile, CopyOptions, build_request
from sparkmirror.copy.delivery import DeliveryMode
from sparkmirror.errors import ConfigError, PropertiesError
from sparkmirror.mirror.topics.replication_policy import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
)
from tests.support.cli.copy_requests import cluster_descriptions, copy_request, topic_view

SECRET = "hunter2"
PROVIDER = (
    "config.providers=env\n"
    "config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider\n"
)
LOGIN = (
    "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
    "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required"
    ' username="me" password="{}";\n'
)


def _options(**changes: Any) -> CopyOptions:
    said = {
        "source_servers": "a:1",
        "target_servers": "b:2",
        "source_config": None,
        "target_config": None,
        "source_alias": "source",
        "target_alias": "target",
        "topics": ("orders|pay.*",),
        "exclude": None,
        "policy": "IdentityReplicationPolicy",
        "start": None,
        "rate": None,
        "tasks": None,
        "on_loss": "halt",
        "read_uncommitted": False,
        "exactly_once": False,
        "commit_interval": None,
        "replication_factor": None,
        "name": None,
    }
    return cast(CopyOptions, said | changes)


def _file(directory: Path, text: str) -> Path:
    file = directory / "client.properties"
    file.write_text(text)
    return file


def test_what_is_not_said_is_as_mirrormaker_has_it() -> None:
    asked = build_request(_options(), {})
    assert isinstance(asked.policy, IdentityReplicationPolicy)
    assert asked.connector == "MirrorSourceConnector"
    assert asked.group_id == "source-mm2"
    assert asked.read_committed
    assert asked.tasks_max >= 1
    assert asked.topic_filter.should_replicate_topic("payments")
    assert not asked.topic_filter.should_replicate_topic("orders.replica")
    assert not asked.config_filter.should_replicate_config_property("min.insync.replicas")


def test_exactly_once_is_said_and_how_often_it_commits() -> None:
    assert build_request(_options(), {}).delivery is DeliveryMode.SEQUENCED
    asked = build_request(_options(exactly_once=True, commit_interval=250), {})
    assert asked.delivery is DeliveryMode.EXACTLY_ONCE
    job = make_job(asked, plan_copy(asked, cluster_descriptions([topic_view("orders")], [])))
    assert (job.delivery, job.commit_interval_s) == (DeliveryMode.EXACTLY_ONCE, 0.25)


def test_exactly_once_does_not_go_with_what_the_source_aborts() -> None:
    with pytest.raises(click.UsageError, match="exclude each other"):
        build_request(_options(exactly_once=True, read_uncommitted=True), {})
    with pytest.raises(click.UsageError, match="--commit-interval is for --exactly-once"):
        build_request(_options(commit_interval=250), {})


def test_own_excludes_come_besides_the_usual_ones() -> None:
    asked = build_request(_options(topics=(".*",), exclude=("tmp.*",)), {})
    wanted = asked.topic_filter.should_replicate_topic
    assert [name for name in ("a", "tmp-1", "x.replica", "__x") if wanted(name)] == ["a"]


def test_policies_go_by_their_java_names() -> None:
    assert isinstance(
        build_request(_options(policy="DefaultReplicationPolicy"), {}).policy,
        DefaultReplicationPolicy,
    )
    with pytest.raises(ConfigError, match="names the unknown class com.example.Mine"):
        build_request(_options(policy="com.example.Mine"), {})


def test_both_clusters_need_a_name_of_their_own() -> None:
    with pytest.raises(click.UsageError, match="Both clusters have the alias 'x'"):
        build_request(_options(source_alias="x", target_alias="x"), {})


def test_brokers_may_stand_in_the_file_and_those_on_the_command_line_win(tmp_path: Path) -> None:
    file = _file(tmp_path, "bootstrap.servers=file:9\n")
    from_file = build_request(_options(source_servers=None, source_config=file), {})
    assert str(from_file.source.access("A").bootstrap_servers[0]) == "file:9"
    both = build_request(_options(source_config=file), {})
    assert str(both.source.access("A").bootstrap_servers[0]) == "a:1"
    with pytest.raises(click.UsageError, match="no broker is named: add --to HOST:PORT"):
        build_request(_options(target_servers=None), {})
    empty = _file(tmp_path, "security.protocol=SSL\n")
    with pytest.raises(click.UsageError, match=r"client.properties has no bootstrap.servers"):
        build_request(_options(source_servers=None, source_config=empty), {})


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(PropertiesError, match="none.properties"):
        ClientFile.read(tmp_path / "none.properties", None, {})


def test_placeholders_are_replaced_and_never_shown(tmp_path: Path) -> None:
    file = _file(tmp_path, PROVIDER + LOGIN.format("${env:PASSWORD}"))
    client = ClientFile.read(file, "a:1", {"PASSWORD": SECRET})
    assert SECRET in client.expanded["sasl.jaas.config"]
    assert SECRET not in client.raw["sasl.jaas.config"]
    assert SECRET not in repr(client)
    login = client.access("A").security.credentials
    assert login is not None
    assert login.password.value == SECRET
    asked = copy_request("a", source=client)
    job = make_job(asked, plan_copy(asked, cluster_descriptions([topic_view("a")], [])))
    assert SECRET not in repr(job)
    assert SECRET not in json.dumps(job.to_json()), "what travels is the placeholder"
    assert "${env:PASSWORD}" in job.settings.source["sasl.jaas.config"]


def test_paths_are_absolute_for_processes_that_run_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secrets.properties").write_text("password=x\n")
    monkeypatch.chdir(tmp_path)
    text = (
        f"{LOGIN.format('${file:secrets.properties:password}')}"
        "config.providers=file\n"
        "config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider\n"
        "ssl.truststore.location=ca.pem\n"
        "client.id=${file:x}\n"
    )
    sent = ClientFile.read(_file(tmp_path, text), "a:1", {}).with_absolute_paths()
    assert sent["ssl.truststore.location"] == str(tmp_path / "ca.pem")
    assert f"${{file:{tmp_path}/secrets.properties:password}}" in sent["sasl.jaas.config"]
    assert sent["client.id"] == "${file:x}"


def test_a_placeholder_without_a_value_is_told(tmp_path: Path) -> None:
    client = ClientFile.read(_file(tmp_path, PROVIDER + LOGIN.format("${env:NONE}")), "a:1", {})
    (notice,) = client.notices
    assert "client.properties" in notice
    assert "${env:NONE} is left as text" in notice


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("security.protocol=SASL\n", "security.protocol SASL is unknown"),
        (LOGIN.format(SECRET).replace("=PLAIN\n", "=GSSAPI\n"), "sasl.mechanism GSSAPI is not"),
        (LOGIN.format(SECRET).replace("username", "user"), "sasl.jaas.config lacks username"),
    ],
    ids=["protocol", "mechanism", "jaas"],
)
def test_faults_name_the_file_and_the_key_and_no_secret(
    tmp_path: Path, text: str, sentence: str
) -> None:
    client = ClientFile.read(_file(tmp_path, text), "a:1", {})
    with pytest.raises(ConfigError) as refused:
        client.access("A")
    assert "client.properties" in str(refused.value)
    assert sentence in str(refused.value)
    assert SECRET not in str(refused.value)


def test_a_fault_does_not_quote_what_a_provider_gave(tmp_path: Path) -> None:
    file = _file(tmp_path, PROVIDER + "security.protocol=${env:PASSWORD}\n")
    client = ClientFile.read(file, "a:1", {"PASSWORD": SECRET})
    with pytest.raises(ConfigError, match=r"\$\{env:PASSWORD\}") as refused:
        client.access("A")
    assert SECRET not in str(refused.value)


def test_each_copy_has_a_directory_of_its_own_unless_told_otherwise() -> None:
    asked = copy_request("a", connector="my copy/1")
    job = make_job(asked, plan_copy(asked, cluster_descriptions([topic_view("a")], [])))
    where = LaunchOptions.resolve(job, None, "", {}, {"XDG_STATE_HOME": "/state"})
    assert where.receipts == "/state/sparkmirror/copies/A-B-my_copy_1/receipts"
    assert where.log == "/state/sparkmirror/copies/A-B-my_copy_1/spark.log"
    assert (
        LaunchOptions.resolve(job, "s3a://bucket/r", "spark://x:7077", {}, {}).receipts
        == "s3a://bucket/r"
    )

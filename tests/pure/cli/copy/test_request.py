"""Options and client files become a request, or an error that contains no secret."""

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
from sparkmirror.copy.job import DataLossPolicy, StartMode, StartPosition
from sparkmirror.errors import ConfigError, PropertiesError
from sparkmirror.mirror.topics.replication_policy import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
)
from sparkmirror.security.sasl_credentials import PasswordLogin
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
    values = {
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
    return cast(CopyOptions, values | changes)


def _file(directory: Path, text: str) -> Path:
    file = directory / "client.properties"
    file.write_text(text)
    return file


def test_defaults_are_those_of_mirrormaker() -> None:
    request = build_request(_options(), {})
    assert isinstance(request.policy, IdentityReplicationPolicy)
    assert request.connector == "MirrorSourceConnector"
    assert request.group_id == "source-mm2"
    assert request.read_committed
    assert request.tasks_max >= 1
    assert request.topic_filter.should_replicate_topic("payments")
    assert not request.topic_filter.should_replicate_topic("orders.replica")
    assert not request.config_filter.should_replicate_config_property("min.insync.replicas")


def test_job_has_delivery_and_commit_interval_of_the_options() -> None:
    assert build_request(_options(), {}).delivery is DeliveryMode.SEQUENCED
    request = build_request(_options(exactly_once=True, commit_interval=250), {})
    assert request.delivery is DeliveryMode.EXACTLY_ONCE
    job = make_job(request, plan_copy(request, cluster_descriptions([topic_view("orders")], [])))
    assert (job.delivery, job.commit_interval_s) == (DeliveryMode.EXACTLY_ONCE, 0.25)


def test_job_has_start_loss_policy_and_isolation_level_of_the_options() -> None:
    start = StartPosition(at=StartMode.LATEST)
    request = build_request(_options(start=start, on_loss="skip", read_uncommitted=True), {})
    job = make_job(request, plan_copy(request, cluster_descriptions([topic_view("orders")], [])))
    assert (job.start, job.on_loss) == (start, DataLossPolicy.SKIP)
    assert not job.settings.read_committed
    request = build_request(_options(), {})
    job = make_job(request, plan_copy(request, cluster_descriptions([topic_view("orders")], [])))
    assert (job.start, job.on_loss) == (StartPosition(), DataLossPolicy.HALT)
    assert job.settings.read_committed


def test_exactly_once_excludes_read_uncommitted_and_commit_interval_requires_it() -> None:
    with pytest.raises(click.UsageError, match="exclude each other"):
        build_request(_options(exactly_once=True, read_uncommitted=True), {})
    with pytest.raises(click.UsageError, match="--commit-interval is for --exactly-once"):
        build_request(_options(commit_interval=250), {})


def test_exclude_option_adds_to_the_default_excludes() -> None:
    request = build_request(_options(topics=(".*",), exclude=("tmp.*",)), {})
    wanted = request.topic_filter.should_replicate_topic
    assert [name for name in ("a", "tmp-1", "x.replica", "__x") if wanted(name)] == ["a"]


def test_policy_is_found_by_its_java_name() -> None:
    assert isinstance(
        build_request(_options(policy="DefaultReplicationPolicy"), {}).policy,
        DefaultReplicationPolicy,
    )
    with pytest.raises(ConfigError, match="names the unknown class com.example.Mine"):
        build_request(_options(policy="com.example.Mine"), {})


def test_source_and_target_must_have_different_aliases() -> None:
    with pytest.raises(click.UsageError, match="Both clusters have the alias 'x'"):
        build_request(_options(source_alias="x", target_alias="x"), {})


def test_brokers_on_the_command_line_override_those_of_the_client_file(tmp_path: Path) -> None:
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


def test_missing_client_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(PropertiesError, match="none.properties"):
        ClientFile.read(tmp_path / "none.properties", None, {})


def test_placeholders_are_replaced_and_job_and_repr_contain_no_secret(tmp_path: Path) -> None:
    file = _file(tmp_path, PROVIDER + LOGIN.format("${env:PASSWORD}"))
    client = ClientFile.read(file, "a:1", {"PASSWORD": SECRET})
    assert SECRET in client.expanded["sasl.jaas.config"]
    assert SECRET not in client.raw["sasl.jaas.config"]
    assert SECRET not in repr(client)
    login = client.access("A").security.current().login
    assert isinstance(login, PasswordLogin)
    assert login.password.value == SECRET
    request = copy_request("a", source=client)
    job = make_job(request, plan_copy(request, cluster_descriptions([topic_view("a")], [])))
    assert SECRET not in repr(job)
    assert SECRET not in json.dumps(job.to_json()), "the job must contain the placeholder"
    assert "${env:PASSWORD}" in job.settings.source["sasl.jaas.config"]


def test_relative_paths_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_placeholder_without_a_value_is_a_notice(tmp_path: Path) -> None:
    client = ClientFile.read(_file(tmp_path, PROVIDER + LOGIN.format("${env:NONE}")), "a:1", {})
    (notice,) = client.notices
    assert "client.properties" in notice
    assert "${env:NONE} is left as text" in notice


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("security.protocol=SASL\n", "security.protocol SASL is unknown"),
        (LOGIN.format(SECRET).replace("=PLAIN\n", "=NOPE\n"), "sasl.mechanism NOPE is not"),
        (LOGIN.format(SECRET).replace("username", "user"), "sasl.jaas.config lacks username"),
    ],
    ids=["protocol", "mechanism", "jaas"],
)
def test_error_names_file_and_key_and_no_secret(tmp_path: Path, text: str, message: str) -> None:
    client = ClientFile.read(_file(tmp_path, text), "a:1", {})
    with pytest.raises(ConfigError) as raised:
        client.access("A")
    assert "client.properties" in str(raised.value)
    assert message in str(raised.value)
    assert SECRET not in str(raised.value)


def test_error_contains_no_provider_value(tmp_path: Path) -> None:
    file = _file(tmp_path, PROVIDER + "security.protocol=${env:PASSWORD}\n")
    client = ClientFile.read(file, "a:1", {"PASSWORD": SECRET})
    with pytest.raises(ConfigError, match=r"\$\{env:PASSWORD\}") as raised:
        client.access("A")
    assert SECRET not in str(raised.value)


def test_each_copy_has_its_own_directory_for_receipts_and_log() -> None:
    request = copy_request("a", connector="my copy/1")
    job = make_job(request, plan_copy(request, cluster_descriptions([topic_view("a")], [])))
    launch = LaunchOptions.resolve(job, None, "", {}, {"XDG_STATE_HOME": "/state"})
    assert launch.receipts == "/state/sparkmirror/copies/A-B-my_copy_1/receipts"
    assert launch.log == "/state/sparkmirror/copies/A-B-my_copy_1/spark.log"
    assert (
        LaunchOptions.resolve(job, "s3a://bucket/r", "spark://x:7077", {}, {}).receipts
        == "s3a://bucket/r"
    )

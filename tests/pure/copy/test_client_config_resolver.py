"""Client properties become connection settings; placeholders are resolved at use."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sparkmirror.copy.client_config_resolver import resolve_client, resolve_producer_limits
from sparkmirror.copy.driver.cluster_queries import ClusterQueries
from sparkmirror.copy.settings import CopySettings
from sparkmirror.errors import ConfigError
from sparkmirror.security.sasl_credentials import PasswordLogin
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.net.connection import ClientConfig

CLASSES = "org.apache.kafka.common.config.provider."
JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required username=u password={};"


def properties(password: str, **more: str) -> dict[str, str]:
    return {
        "bootstrap.servers": "here:9092",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": JAAS.format(password),
        "config.providers": "file,env",
        "config.providers.file.class": f"{CLASSES}FileConfigProvider",
        "config.providers.env.class": f"{CLASSES}EnvVarConfigProvider",
        **more,
    }


def password_of(client: ClientConfig) -> str:
    login = client.security.current().login
    assert isinstance(login, PasswordLogin)
    return login.password.value


def test_placeholders_are_resolved_with_the_declared_providers(tmp_path: Path) -> None:
    file = tmp_path / "secrets.properties"
    file.write_text("password=hunter2\n")
    raw = properties(f"${{file:{file}:password}}")
    client, (address,) = resolve_client("source", raw, "me", {})
    assert password_of(client) == "hunter2"
    assert str(address) == "here:9092"
    client, _ = resolve_client("source", properties("${env:PW}"), "me", {"PW": "other"})
    assert password_of(client) == "other"


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        ("${file:/not/there.properties:password}", "/not/there.properties"),
        ("${env:PW}", "PW: the environment has no such variable"),
    ],
    ids=["file", "env"],
)
def test_an_unresolvable_placeholder_is_named(variable: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_client("source", properties(variable), "me", {})
    assert str(caught.value).startswith("source on ")
    assert f"sasl.jaas.config: {variable} cannot be fetched: " in str(caught.value)
    assert message in str(caught.value)


def test_text_that_only_looks_like_a_placeholder_stays_unchanged() -> None:
    client, _ = resolve_client("source", properties("'${vault:x}'"), "me", {})
    assert password_of(client) == "${vault:x}"


def test_no_fault_quotes_a_resolved_value() -> None:
    raw = properties("x", **{"security.protocol": "${env:PROTOCOL}"})
    with pytest.raises(ConfigError) as caught:
        resolve_client("source", raw, "me", {"PROTOCOL": "hunter2"})
    assert "hunter2" not in str(caught.value)
    assert "${env:PROTOCOL}" in str(caught.value)


def test_the_limits_of_the_producer_follow_resolved_values(tmp_path: Path) -> None:
    file = tmp_path / "limits.properties"
    file.write_text("size=900000\nservers=my.servicebus.windows.net:9093\n")
    named = {
        "bootstrap.servers": f"${{file:{file}:servers}}",
        "max.request.size": f"${{file:{file}:size}}",
    }
    settings = CopySettings(source=properties("x"), target=properties("x", **named))
    queries = ClusterQueries.create(settings)
    queries.close()
    assert queries.producer.max_request_size == 900_000
    assert queries.producer.codecs == {CompressionType.NONE}, "those of Event Hubs"


def test_no_fault_about_a_limit_quotes_a_resolved_value() -> None:
    raw = properties("x", **{"max.request.size": "${env:SIZE}"})
    with pytest.raises(ConfigError) as caught:
        resolve_producer_limits("target", raw, {"SIZE": "hunter2"})
    assert str(caught.value).startswith("target on ")
    assert "hunter2" not in str(caught.value)
    assert "${env:SIZE}" in str(caught.value)


def test_a_connection_uses_the_value_that_a_provider_has_now(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "secrets.properties"
    file.write_text("password=before\n")
    client, _ = resolve_client("source", properties(f"${{file:{file}:password}}"), "me", {})
    unchanged = client.security.current()
    assert client.security.current() == unchanged
    file.write_text("password=after\n")
    assert password_of(client) == "after"
    assert client.security.protocol == "SASL_PLAINTEXT"
    file.unlink()
    assert password_of(client) == "after"
    assert re.search(r"source on .*secrets\.properties", caplog.text)
    file.write_text("password=last\n")
    assert password_of(client) == "last"

"""Secrets are hidden by key; a path of a secret and a placeholder are shown."""

from __future__ import annotations

import pytest

from sparkmirror.config.definition.value_types import Type
from sparkmirror.config.files.flow_config_precedence import ALL_CONNECTOR_NAMES
from sparkmirror.config.secrets.redaction import is_secret, redact_value
from sparkmirror.config.tables.dedicated import DEDICATED
from sparkmirror.config.tables.distributed import DISTRIBUTED
from sparkmirror.config.tables.source import SOURCE

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
PASSWORDS = sorted(
    {
        key.name
        for table in (SOURCE, DEDICATED, DISTRIBUTED)
        for key in table
        if key.type is Type.PASSWORD
    }
)
NOT_SECRET = {
    "sasl.oauthbearer.assertion.private.key.file",
    "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.token.endpoint.url",
}


@pytest.mark.parametrize("name", PASSWORDS)
def test_every_password_of_the_tables_is_secret_under_any_prefix(name: str) -> None:
    for prefix in ("", "A.", "A->B.producer.override.", "source.cluster.", "target.consumer."):
        assert is_secret(prefix + name)
        assert "hunter2" not in redact_value(prefix + name, "hunter2")


def test_no_other_name_of_the_tables_is_secret() -> None:
    names = ALL_CONNECTOR_NAMES | set(DEDICATED.names) | set(DISTRIBUTED.names)
    assert {name for name in names if is_secret(name)} == set(PASSWORDS)
    assert names >= NOT_SECRET


@pytest.mark.parametrize(
    "key",
    [
        "schema.registry.basic.auth.user.info",
        "A.apiKey",
        "aws.secret.access.key",
        "config.providers.vault.param.token",
        "my_api_key",
        "client-secret",
        "clientSecret",
        "x.credentials",
        "sslPassword",
        "PASSWORD",
    ],
)
def test_a_key_with_a_word_for_a_secret_is_hidden(key: str) -> None:
    assert redact_value(key, "hunter2") == "[hidden]"


@pytest.mark.parametrize(
    "key",
    [
        "topics",
        "key.converter",
        "inter.worker.key.ttl.ms",
        "tokenizer",
        "ssl.keystore.location",
        "",
    ],
)
def test_a_key_without_such_a_word_is_shown(key: str) -> None:
    assert redact_value(key, "plain") == "plain"


def test_a_login_module_shows_class_and_user_name_only() -> None:
    value = f"{PLAIN} required username=alice password='hunter2' other=x1;"
    expected = f'{PLAIN} required username="alice" password="[hidden]" other="[hidden]";'
    assert redact_value("source.cluster.sasl.jaas.config", value) == expected


def test_a_login_module_that_cannot_be_parsed_is_hidden() -> None:
    assert redact_value("sasl.jaas.config", f"{PLAIN} required password=hun ter2;") == "[hidden]"


def test_placeholders_are_shown() -> None:
    assert redact_value("ssl.key.password", "${file:/s:pw}") == "${file:/s:pw}"
    assert redact_value("ssl.key.password", "hunter2${file:/s:pw}") == "[hidden]"
    value = f'{PLAIN} required username="u" password="${{env:PW}}";'
    assert redact_value("sasl.jaas.config", value) == value


def test_a_password_inside_an_address_is_hidden() -> None:
    shown = redact_value("http.proxy", "http://alice:hunter2@proxy:80/x")
    assert shown == "http://alice:[hidden]@proxy:80/x"
    assert redact_value("other", "http://h:80/a@b") == "http://h:80/a@b"

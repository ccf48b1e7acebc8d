"""The mechanism decides about a login; its module may be of another one, or in a JAAS file."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from sparkmirror.config import warn_once
from sparkmirror.config.secrets.password import Password
from sparkmirror.errors import ConfigError
from sparkmirror.security.login_config import LOGIN_BUILDERS, read_login
from sparkmirror.security.sasl_credentials import PasswordLogin

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def sasl(mechanism: str, line: str) -> dict[str, str]:
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": line}


@pytest.mark.parametrize(
    ("mechanism", "module"), [("SCRAM-SHA-512", PLAIN), ("PLAIN", SCRAM)], ids=["scram", "plain"]
)
def test_the_mechanism_decides_and_another_module_is_warned_about_once(
    mechanism: str,
    module: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(warn_once, "_said", set())
    properties = sasl(mechanism, f"{module} required username=u password=hunter2;")
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert read_login(properties, {}) == PasswordLogin(
                mechanism=mechanism, username="u", password=Password("hunter2")
            )
    (record,) = caplog.records
    assert f"names {module}, which does not fit sasl.mechanism {mechanism}" in record.getMessage()
    assert "hunter2" not in caplog.text


def test_a_missing_mechanism_is_named_if_the_login_module_is_not_that_of_kerberos() -> None:
    with pytest.raises(ConfigError, match=r"sasl\.mechanism is missing: its default GSSAPI"):
        read_login({"sasl.jaas.config": f"{PLAIN} required username=u password=p;"}, {})


def test_an_unknown_mechanism_lists_the_supported_ones() -> None:
    with pytest.raises(ConfigError) as caught:
        read_login(sasl("DIGEST-MD5", "x required;"), {})
    assert ", ".join(LOGIN_BUILDERS) in str(caught.value)


@pytest.mark.parametrize(
    "module", ["com.sun.security.auth.module.JndiLoginModule", "com.acme.OwnLoginModule"]
)
def test_a_module_that_belongs_to_no_mechanism_is_refused(module: str) -> None:
    with pytest.raises(ConfigError, match=r"sasl\.jaas\.config|not allowed"):
        read_login(sasl("PLAIN", f"{module} required username=u password=p;"), {})


def test_without_the_property_the_jaas_file_of_kafka_opts_is_used(tmp_path: Path) -> None:
    file = tmp_path / "client jaas.conf"
    file.write_text(
        "KafkaServer { x.Y required; };\nKafkaClient {\n  "
        f'{SCRAM} required\n  username="u"\n  password="from-file";\n}};\n'
    )
    environment = {"KAFKA_OPTS": f'-Xmx1g "-Djava.security.auth.login.config={file}"'}
    mechanism = {"sasl.mechanism": "SCRAM-SHA-256"}
    made = read_login(mechanism, environment)
    assert isinstance(made, PasswordLogin)
    assert made.password == Password("from-file")
    own = sasl("SCRAM-SHA-256", f"{SCRAM} required username=u password=own;")
    made = read_login(own, environment)
    assert isinstance(made, PasswordLogin)
    assert made.password == Password("own")


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "cannot be read"), ("KafkaServer { x.Y required; };", "has no section KafkaClient")],
    ids=["missing", "section"],
)
def test_a_jaas_file_that_cannot_be_used_is_named(
    tmp_path: Path, content: str | None, message: str
) -> None:
    file = tmp_path / "jaas.conf"
    if content is not None:
        file.write_text(content)
    environment = {"KAFKA_OPTS": f"-Djava.security.auth.login.config={file}"}
    with pytest.raises(ConfigError, match=f"{file} of KAFKA_OPTS {message}"):
        read_login({"sasl.mechanism": "PLAIN"}, environment)


def test_a_delegation_token_is_an_option_of_scram_only() -> None:
    options = "required username=id password=hmac tokenauth=true;"
    made = read_login(sasl("SCRAM-SHA-256", f"{SCRAM} {options}"), {})
    assert isinstance(made, PasswordLogin)
    assert made.is_delegation_token
    made = read_login(sasl("PLAIN", f"{PLAIN} {options}"), {})
    assert isinstance(made, PasswordLogin)
    assert not made.is_delegation_token

"""Changed values of config providers are used by the next connection."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from sparkmirror.config.secrets.providers import create_providers
from sparkmirror.config.secrets.variables import expand_variables
from sparkmirror.errors import ConfigError
from sparkmirror.security.reloaded_properties import MAX_AGE_S, ReloadedProperties
from sparkmirror.security.sasl_credentials import PasswordLogin
from sparkmirror.security.security_with_config_providers import SecurityWithConfigProviders

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


class ProvidedProperties:
    """Properties whose password is in a file."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.raw = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f"{PLAIN} required username=u password=${{file:{file}:pw}};",
            "config.providers": "file",
            "config.providers.file.class": (
                "org.apache.kafka.common.config.provider.FileConfigProvider"
            ),
        }

    def set_password(self, password: str) -> None:
        self.file.write_text(f"pw={password}\n")
        self.file.chmod(0o600)

    def read(self) -> dict[str, str]:
        return expand_variables(self.raw, create_providers(self.raw, {}).strict().by_name).values


@pytest.fixture
def provided(tmp_path: Path) -> ProvidedProperties:
    made = ProvidedProperties(tmp_path / "secrets.properties")
    made.set_password("one")
    return made


def password(source: SecurityWithConfigProviders) -> str:
    login = source.current().login
    assert isinstance(login, PasswordLogin)
    return login.password.value


def test_the_next_connection_uses_a_changed_password(provided: ProvidedProperties) -> None:
    source = SecurityWithConfigProviders("west", provided.read)
    assert source.protocol == "SASL_PLAINTEXT"
    assert password(source) == "one"
    provided.set_password("two")
    assert password(source) == "two"


def test_equal_values_give_the_same_object(provided: ProvidedProperties) -> None:
    source = SecurityWithConfigProviders("west", provided.read)
    first = source.current()
    provided.set_password("one")
    assert source.current() is first


@pytest.mark.parametrize("trouble", ["missing file", "missing key", "unusable"])
def test_the_last_good_settings_stay_while_the_new_ones_cannot_be_used(
    provided: ProvidedProperties, trouble: str, caplog: pytest.LogCaptureFixture
) -> None:
    source = SecurityWithConfigProviders("west", provided.read)
    if trouble == "missing file":
        provided.file.unlink()
    else:
        provided.file.write_text("" if trouble == "missing key" else 'pw="s3cret\n')
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert password(source) == "one"
    assert len(caplog.records) == 1
    assert "west: new connections use the security settings of before" in caplog.text
    assert "s3cret" not in caplog.text
    provided.set_password("two")
    assert password(source) == "two"


def test_settings_that_cannot_be_used_at_the_start_are_an_error(
    provided: ProvidedProperties,
) -> None:
    provided.file.unlink()
    with pytest.raises(ConfigError):
        SecurityWithConfigProviders("west", provided.read)


def test_reloaded_properties_follow_the_provider_and_keep_the_last_good_values(
    provided: ProvidedProperties, caplog: pytest.LogCaptureFixture
) -> None:
    now_s = [0.0]
    properties = ReloadedProperties(provided.read, lambda: now_s[0])
    assert "password=one" in properties["sasl.jaas.config"]
    provided.set_password("two")
    assert "password=one" in properties["sasl.jaas.config"]
    now_s[0] += MAX_AGE_S
    assert "password=two" in dict(properties)["sasl.jaas.config"]
    provided.file.unlink()
    now_s[0] += MAX_AGE_S
    assert "password=two" in properties["sasl.jaas.config"]
    assert "The values of before are used" in caplog.text
    assert "two" not in repr(properties) + caplog.text


def test_reloaded_properties_keep_a_value_that_the_provider_has_lost(
    provided: ProvidedProperties, caplog: pytest.LogCaptureFixture
) -> None:
    def read() -> dict[str, str]:
        return expand_variables(provided.raw, create_providers(provided.raw, {}).by_name).values

    now_s = [0.0]
    properties = ReloadedProperties(read, lambda: now_s[0])
    provided.file.write_text("")
    now_s[0] += MAX_AGE_S
    assert "password=one" in properties["sasl.jaas.config"]
    assert f"no provider has a value for ${{file:{provided.file}:pw}} now" in caplog.text

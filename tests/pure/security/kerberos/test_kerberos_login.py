"""The options of Krb5LoginModule, and the file of Kerberos settings. No KDC is asked."""

from __future__ import annotations

import importlib.util

import pytest

from sparkmirror.errors import ConfigError
from sparkmirror.security.kerberos.gss_contexts import (
    DEFAULTS,
    KerberosTickets,
    apply_krb5_conf,
    require_gssapi,
)
from sparkmirror.security.kerberos.kerberos_login import kerberos_login
from sparkmirror.security.login_settings import LoginSettings
from sparkmirror.security.sasl_credentials import KerberosLogin, LoginRefused

SERVICE = {"sasl.kerberos.service.name": "kafka"}


@pytest.fixture(autouse=True)
def installed_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Act as if the extra were installed: nothing here calls the library."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setenv("KRB5_CONFIG", str(DEFAULTS))


def login(options: dict[str, str], properties: dict[str, str] | None = None) -> KerberosLogin:
    given = SERVICE if properties is None else properties
    return kerberos_login(LoginSettings(mechanism="GSSAPI", options=options, properties=given))


def test_a_keytab_and_its_principal_are_read() -> None:
    options = {
        "useKeyTab": "true",
        "keyTab": "/etc/m.keytab",
        "principal": "m@LAB",
        "storeKey": "t",
    }
    assert login(options) == KerberosLogin(
        tickets=KerberosTickets(service_name="kafka", principal="m@LAB", keytab="/etc/m.keytab"),
        principal="m@LAB",
    )


def test_a_ticket_cache_is_read_and_the_service_name_may_be_an_option() -> None:
    options = {"useTicketCache": "true", "ticketCache": "/tmp/cc", "serviceName": "brokers"}  # noqa: S108
    assert login(options, {}) == KerberosLogin(
        tickets=KerberosTickets(service_name="brokers", ticket_cache="/tmp/cc")  # noqa: S108
    )


@pytest.mark.parametrize(
    ("options", "properties", "message"),
    [
        ({"useTicketCache": "true"}, {}, r"sasl\.kerberos\.service\.name is missing"),
        ({"useTicketCache": "true", "serviceName": "a"}, SERVICE, "has another serviceName"),
        ({}, SERVICE, "needs useKeyTab=true, or useTicketCache=true"),
        ({"useKeyTab": "true", "principal": "m@LAB"}, SERVICE, "needs keyTab and principal"),
        ({"useKeyTab": "true", "keyTab": "/k"}, SERVICE, "needs keyTab and principal"),
    ],
    ids=["service", "two services", "nothing", "keytab", "principal"],
)
def test_incomplete_options_are_named(
    options: dict[str, str], properties: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        login(options, properties)


def test_a_keytab_that_cannot_be_read_is_named() -> None:
    tickets = KerberosTickets(service_name="kafka", principal="m@LAB", keytab="/no/m.keytab")
    with pytest.raises(LoginRefused, match="the keytab /no/m.keytab cannot be read"):
        tickets.new_context("b1")


@pytest.mark.parametrize(
    ("environment", "process", "expected"),
    [
        ({}, {}, "/etc/krb5.conf"),
        ({"KAFKA_OPTS": "-Djava.security.krb5.conf=/java.conf"}, {}, "/java.conf"),
        ({"KAFKA_OPTS": "-Djava.security.krb5.conf=/java.conf"}, {"KRB5_CONFIG": "/a"}, "/a"),
    ],
    ids=["system", "java", "variable"],
)
def test_the_file_of_java_is_used_unless_krb5_config_is_set(
    environment: dict[str, str], process: dict[str, str], expected: str
) -> None:
    for _ in range(2):
        apply_krb5_conf(environment, process)
        assert process["KRB5_CONFIG"] == f"{expected}:{DEFAULTS}"
    assert "dns_canonicalize_hostname = fallback" in DEFAULTS.read_text()


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install sparkmirror\[kerberos\].*libkrb5-dev"):
        require_gssapi("sasl.mechanism")

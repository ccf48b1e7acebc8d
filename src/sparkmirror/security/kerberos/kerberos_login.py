"""The login of GSSAPI: the options of Java's Krb5LoginModule."""

from __future__ import annotations

import logging
from pathlib import Path

from sparkmirror.config.secrets.file_permissions import exposure_of
from sparkmirror.config.secrets.jaas import SASL_JAAS_CONFIG
from sparkmirror.config.warn_once import warn_once
from sparkmirror.errors import ConfigError
from sparkmirror.security.kerberos.gss_contexts import (
    KerberosTickets,
    apply_krb5_conf,
    require_gssapi,
)
from sparkmirror.security.login_settings import LoginSettings
from sparkmirror.security.sasl_credentials import KerberosLogin

log = logging.getLogger(__name__)

SERVICE_NAME = "sasl.kerberos.service.name"
KRB5_LOGIN_MODULES = (
    "com.sun.security.auth.module.Krb5LoginModule",
    "com.ibm.security.auth.module.Krb5LoginModule",
)


def kerberos_login(settings: LoginSettings) -> KerberosLogin:
    """Return the login. Raises ConfigError without the library, or for invalid options."""
    require_gssapi("sasl.mechanism")
    apply_krb5_conf(settings.environment)
    options = settings.options
    keytab = options.get("keyTab", "").removeprefix("file:")
    if _is_true(options.get("useKeyTab", "false")):
        if not keytab or not options.get("principal"):
            raise _config_error("has useKeyTab=true and needs keyTab and principal")
        exposure = exposure_of(Path(keytab))
        if exposure:
            warn_once(log, f"{SASL_JAAS_CONFIG}: {exposure}")
    else:
        keytab = ""
        if not _is_true(options.get("useTicketCache", "false")):
            raise _config_error("needs useKeyTab=true, or useTicketCache=true")
    return KerberosLogin(
        tickets=KerberosTickets(
            service_name=_service_name(settings),
            principal=options.get("principal", ""),
            keytab=keytab,
            ticket_cache=options.get("ticketCache", "") if not keytab else "",
        ),
        principal=options.get("principal", ""),
    )


def _service_name(settings: LoginSettings) -> str:
    key, option = settings.properties.get(SERVICE_NAME, ""), settings.options.get("serviceName", "")
    if key and option and key != option:
        raise ConfigError.of(
            SERVICE_NAME, f"{SERVICE_NAME} is {key}, but {SASL_JAAS_CONFIG} has another serviceName"
        )
    if not (key or option):
        raise ConfigError.of(
            SERVICE_NAME, f"{SERVICE_NAME} is missing: it is the user of the brokers, often kafka"
        )
    return key or option


def _is_true(text: str) -> bool:
    return text.strip().lower() == "true"


def _config_error(problem: str) -> ConfigError:
    return ConfigError.of(SASL_JAAS_CONFIG, f"{SASL_JAAS_CONFIG} {problem}")

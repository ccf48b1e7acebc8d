"""The login of Java's client properties: `sasl.mechanism` and `sasl.jaas.config`.

Without `sasl.jaas.config`, the login module is that of the section `KafkaClient` in the JAAS file
that `-Djava.security.auth.login.config` in KAFKA_OPTS names, as for Java's clients.

The mechanism decides about the login. A login module of another mechanism is accepted with a
warning, because its options often fit. A module that belongs to no mechanism is refused.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from sparkmirror.config.secrets import jaas
from sparkmirror.config.secrets.jaas import LoginModule
from sparkmirror.config.secrets.password import Password
from sparkmirror.config.warn_once import warn_once
from sparkmirror.errors import ConfigError
from sparkmirror.security.java_options import system_property
from sparkmirror.security.kerberos.kerberos_login import KRB5_LOGIN_MODULES, kerberos_login
from sparkmirror.security.login_settings import LoginSettings
from sparkmirror.security.msk_iam.msk_login import IAM_LOGIN_MODULE, msk_login
from sparkmirror.security.oauthbearer.oauth_login import oauth_login
from sparkmirror.security.sasl_credentials import PasswordLogin, SaslLogin

log = logging.getLogger(__name__)

SASL_MECHANISM = "sasl.mechanism"
DEFAULT_MECHANISM = "GSSAPI"
JAAS_FILE_PROPERTY = "java.security.auth.login.config"
_CLIENT_SECTION = re.compile(r"\bKafkaClient\s*\{(.*?)\}\s*;", re.DOTALL)

LoginBuilder = Callable[[LoginSettings], SaslLogin]
"""Raises ConfigError."""


def read_login(properties: Mapping[str, str], environment: Mapping[str, str]) -> SaslLogin:
    """Return the login of a client. Raises ConfigError that names the key."""
    mechanism = properties.get(SASL_MECHANISM, DEFAULT_MECHANISM)
    build = LOGIN_BUILDERS.get(mechanism)
    if build is None:
        raise ConfigError.of(
            SASL_MECHANISM,
            f"{SASL_MECHANISM} {mechanism} is not supported: use one of"
            f" {', '.join(LOGIN_BUILDERS)}",
        )
    module = _login_module(properties, environment)
    if SASL_MECHANISM not in properties and module.class_name not in LOGIN_MODULES[mechanism]:
        raise ConfigError.of(
            SASL_MECHANISM,
            f"{SASL_MECHANISM} is missing: its default {mechanism} does not use the login module of"
            f" {jaas.SASL_JAAS_CONFIG}; set it to one of {', '.join(LOGIN_BUILDERS)}",
        )
    _check_module(mechanism, module)
    return build(
        LoginSettings(
            mechanism=mechanism,
            options=module.options,
            properties=properties,
            environment=environment,
        )
    )


def _login_module(properties: Mapping[str, str], environment: Mapping[str, str]) -> LoginModule:
    text = properties.get(jaas.SASL_JAAS_CONFIG)
    file = system_property(environment, JAAS_FILE_PROPERTY)
    if text is None and file:
        text = _client_section(Path(file))
    if text is None:
        raise ConfigError.of(
            jaas.SASL_JAAS_CONFIG, f"{jaas.SASL_JAAS_CONFIG} is missing: it has the login"
        )
    module, notices = jaas.parse_login_module(text)
    for notice in notices:
        warn_once(log, f"{notice.key}: {notice.message}")
    return module


def _client_section(file: Path) -> str:
    """Return the content of the section `KafkaClient` of a JAAS file. Raises ConfigError."""
    key = jaas.SASL_JAAS_CONFIG
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise ConfigError.of(
            key, f"{key} is missing, and the JAAS file {file} of KAFKA_OPTS cannot be read"
        ) from None
    section = _CLIENT_SECTION.search(text)
    if section is None:
        raise ConfigError.of(
            key,
            f"{key} is missing, and the JAAS file {file} of KAFKA_OPTS has no section"
            " KafkaClient { ... };",
        )
    return section[1]


def _check_module(mechanism: str, module: LoginModule) -> None:
    """Warn about a module of another mechanism. Raises ConfigError for an unknown one."""
    key = jaas.SASL_JAAS_CONFIG
    own = LOGIN_MODULES[mechanism]
    if module.class_name in own:
        return
    if not any(module.class_name in names for names in LOGIN_MODULES.values()):
        raise ConfigError.of(
            key,
            f"{key} names a login module that is not known; {mechanism} uses {own[0]}",
        )
    warn_once(
        log,
        f"{key} names {module.class_name}, which does not fit {SASL_MECHANISM} {mechanism}: the"
        f" mechanism decides, the options are used; name {own[0]}",
    )


def _password_login(settings: LoginSettings) -> PasswordLogin:
    options = settings.options
    missing = [name for name in ("username", "password") if name not in options]
    if missing:
        raise ConfigError.of(
            jaas.SASL_JAAS_CONFIG, f"{jaas.SASL_JAAS_CONFIG} lacks {' and '.join(missing)}"
        )
    return PasswordLogin(
        mechanism=settings.mechanism,
        username=options["username"],
        password=Password(options["password"]),
        is_delegation_token=(
            settings.mechanism.startswith("SCRAM-")
            and options.get("tokenauth", "").strip().lower() == "true"
        ),
    )


LOGIN_BUILDERS: Mapping[str, LoginBuilder] = {
    "PLAIN": _password_login,
    "SCRAM-SHA-256": _password_login,
    "SCRAM-SHA-512": _password_login,
    "OAUTHBEARER": oauth_login,
    "AWS_MSK_IAM": msk_login,
    "GSSAPI": kerberos_login,
}
"""The supported mechanisms."""

LOGIN_MODULES: Mapping[str, tuple[str, ...]] = {
    **{mechanism: (module,) for mechanism, module in jaas.LOGIN_MODULES.items()},
    "OAUTHBEARER": ("org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",),
    "AWS_MSK_IAM": (IAM_LOGIN_MODULE,),
    "GSSAPI": KRB5_LOGIN_MODULES,
}
"""The login modules of each mechanism."""
assert LOGIN_MODULES.keys() == LOGIN_BUILDERS.keys()

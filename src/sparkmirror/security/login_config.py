"""The login of Java's client properties: `sasl.mechanism` and `sasl.jaas.config`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from sparkmirror.config.secrets import jaas
from sparkmirror.config.secrets.jaas import LoginModule
from sparkmirror.config.secrets.password import Password
from sparkmirror.errors import ConfigError
from sparkmirror.security.logins import PasswordLogin, SaslLogin

log = logging.getLogger(__name__)

SASL_MECHANISM = "sasl.mechanism"
DEFAULT_MECHANISM = "GSSAPI"

LoginBuilder = Callable[[str, LoginModule, Mapping[str, str]], SaslLogin]
"""Takes the mechanism, the login module and all properties. Raises ConfigError."""


def read_login(properties: Mapping[str, str]) -> SaslLogin:
    """Return the login of a client. Raises ConfigError that names the key."""
    mechanism = properties.get(SASL_MECHANISM, DEFAULT_MECHANISM)
    build = LOGIN_BUILDERS.get(mechanism)
    if build is None:
        raise ConfigError.of(
            SASL_MECHANISM,
            f"{SASL_MECHANISM} {mechanism} is not supported: use one of"
            f" {', '.join(LOGIN_BUILDERS)}",
        )
    module, notices = jaas.parse_login_module(properties.get(jaas.SASL_JAAS_CONFIG, ""))
    for notice in notices:
        log.warning("%s: %s", notice.key, notice.message)
    return build(mechanism, module, properties)


def _password_login(
    mechanism: str, module: LoginModule, _properties: Mapping[str, str]
) -> PasswordLogin:
    if module.class_name != jaas.LOGIN_MODULES[mechanism]:
        raise ConfigError.of(
            jaas.SASL_JAAS_CONFIG,
            f"{jaas.SASL_JAAS_CONFIG} names another login module than"
            f" {jaas.LOGIN_MODULES[mechanism]},"
            f" which {mechanism} needs",
        )
    missing = [name for name in ("username", "password") if name not in module.options]
    if missing:
        raise ConfigError.of(
            jaas.SASL_JAAS_CONFIG, f"{jaas.SASL_JAAS_CONFIG} lacks {' and '.join(missing)}"
        )
    return PasswordLogin(
        mechanism=mechanism,
        username=module.options["username"],
        password=Password(module.options["password"]),
    )


LOGIN_BUILDERS: Mapping[str, LoginBuilder] = {
    "PLAIN": _password_login,
    "SCRAM-SHA-256": _password_login,
    "SCRAM-SHA-512": _password_login,
}
"""The supported mechanisms."""

"""The principal of a client, as `kafka-acls.sh` writes it, as far as the client can know it."""

from __future__ import annotations

from collections.abc import Mapping

from sparkmirror.security.client_security import ClientSecurity
from sparkmirror.security.sasl_credentials import KerberosLogin, PasswordLogin

ANONYMOUS = "User:ANONYMOUS"
_KEY_STORE_KEYS = ("ssl.keystore.location", "ssl.keystore.key")


def principal_of(security: ClientSecurity, properties: Mapping[str, str]) -> str:
    """Return the principal; text in angle brackets stands for what only the broker knows."""
    if isinstance(security.login, PasswordLogin):
        return f"User:{security.login.username}"
    if isinstance(security.login, KerberosLogin):
        # The brokers' default rule: the first part of the principal, without its realm.
        name = security.login.principal.partition("@")[0].partition("/")[0]
        return f"User:{name or '<principal of the ticket>'}"
    if security.login is not None:
        return "User:<subject of the token>"
    if security.ssl_context is not None and any(properties.get(key) for key in _KEY_STORE_KEYS):
        return "User:<subject of the client certificate>"
    return ANONYMOUS


def login_description(security: ClientSecurity, properties: Mapping[str, str]) -> str:
    """Return how the client proves who it is."""
    if security.login is not None:
        return f"{security.protocol}, {security.login.mechanism} as {_name(security, properties)}"
    return f"{security.protocol}, {_name(security, properties)}"


def _name(security: ClientSecurity, properties: Mapping[str, str]) -> str:
    principal = principal_of(security, properties)
    return "no login" if principal == ANONYMOUS else principal.removeprefix("User:")

"""JAAS lines and client settings: how a broker knows a user, and how a user says who it is."""

from __future__ import annotations

from collections.abc import Mapping

from sparkmirror.config.secrets.jaas import LOGIN_MODULES

MECHANISMS = tuple(LOGIN_MODULES)
DEFAULT_MECHANISM = "SCRAM-SHA-512"


def client_jaas_config(mechanism: str, user: str, password: str) -> str:
    """Write `sasl.jaas.config` for a client."""
    return f"{_login_module(mechanism)} username={_quoted(user)} password={_quoted(password)};"


def broker_jaas_config(mechanism: str, users: Mapping[str, str], as_user: str | None = None) -> str:
    """Write `sasl.jaas.config` for a broker's listener.

    PLAIN carries its users in the line; SCRAM looks them up in the cluster. `as_user` is whom
    the broker itself logs in as when it calls others on that listener.
    """
    words = [_login_module(mechanism)]
    if as_user is not None:
        words += [f"username={_quoted(as_user)}", f"password={_quoted(users[as_user])}"]
    if mechanism == "PLAIN":
        words += [f"user_{user}={_quoted(password)}" for user, password in users.items()]
    return " ".join(words) + ";"


def sasl_client_properties(mechanism: str, user: str, password: str) -> dict[str, str]:
    """Say in Java's names who a client is."""
    return {
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": client_jaas_config(mechanism, user, password),
    }


def _login_module(mechanism: str) -> str:
    return f"{LOGIN_MODULES[mechanism]} required"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

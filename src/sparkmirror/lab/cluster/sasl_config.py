"""SASL settings: `sasl.jaas.config` of brokers and clients."""

from __future__ import annotations

from collections.abc import Mapping

from sparkmirror.config.secrets.jaas import LOGIN_MODULES

MECHANISMS = tuple(LOGIN_MODULES)
DEFAULT_MECHANISM = "SCRAM-SHA-512"


def client_jaas_config(mechanism: str, user: str, password: str) -> str:
    """Return `sasl.jaas.config` for a client."""
    return f"{_login_module(mechanism)} username={_quoted(user)} password={_quoted(password)};"


def broker_jaas_config(mechanism: str, users: Mapping[str, str], as_user: str | None = None) -> str:
    """Return `sasl.jaas.config` for a broker's listener.

    A PLAIN line holds all users; for SCRAM the cluster stores them. `as_user` is the user with
    which the broker itself logs in to other brokers on that listener.
    """
    parts = [_login_module(mechanism)]
    if as_user is not None:
        parts += [f"username={_quoted(as_user)}", f"password={_quoted(users[as_user])}"]
    if mechanism == "PLAIN":
        parts += [f"user_{user}={_quoted(password)}" for user, password in users.items()]
    return " ".join(parts) + ";"


def sasl_client_properties(mechanism: str, user: str, password: str) -> dict[str, str]:
    """Return the SASL client properties of a user."""
    return {
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": client_jaas_config(mechanism, user, password),
    }


def _login_module(mechanism: str) -> str:
    return f"{LOGIN_MODULES[mechanism]} required"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

"""SASL settings of brokers and clients: `sasl.jaas.config` and the keys of OAUTHBEARER."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sparkmirror.lab.cluster.cluster_spec import OAuthEndpoints

_SECURITY = "org.apache.kafka.common.security"
_LOGIN_MODULES = {
    "PLAIN": f"{_SECURITY}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{_SECURITY}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_SECURITY}.scram.ScramLoginModule",
}
_OAUTH_LOGIN_MODULE = f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule required"
_OAUTH_VALIDATOR = f"{_SECURITY}.oauthbearer.OAuthBearerValidatorCallbackHandler"
_OAUTH_LOGIN = f"{_SECURITY}.oauthbearer.OAuthBearerLoginCallbackHandler"

MECHANISMS = tuple(_LOGIN_MODULES)
"""The mechanisms with a user name and a password, which every SASL listener offers."""
OAUTHBEARER = "OAUTHBEARER"
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


def oauth_client_properties(oauth: OAuthEndpoints, user: str, password: str) -> dict[str, str]:
    """Return the SASL client properties of a user who fetches tokens with client credentials."""
    return {
        "sasl.mechanism": OAUTHBEARER,
        "sasl.oauthbearer.token.endpoint.url": oauth.token_url,
        "sasl.login.callback.handler.class": _OAUTH_LOGIN,
        "sasl.jaas.config": (
            f"{_OAUTH_LOGIN_MODULE} clientId={_quoted(user)} clientSecret={_quoted(password)};"
        ),
    }


def oauth_listener_properties(listener: str, oauth: OAuthEndpoints) -> Iterator[tuple[str, str]]:
    """Yield the broker properties with which a listener accepts the tokens of an OAuth server."""
    prefix = f"listener.name.{listener}.{OAUTHBEARER.lower()}"
    yield f"{prefix}.sasl.jaas.config", f"{_OAUTH_LOGIN_MODULE};"
    yield f"{prefix}.sasl.server.callback.handler.class", _OAUTH_VALIDATOR
    yield "sasl.oauthbearer.jwks.endpoint.url", oauth.jwks_url
    yield "sasl.oauthbearer.expected.audience", oauth.audience


def oauth_jvm_options(oauth: OAuthEndpoints | None) -> list[str]:
    """Return the JVM options with which Kafka's Java code may call the OAuth server."""
    if oauth is None:
        return []
    urls = f"{oauth.jwks_url},{oauth.token_url}"
    return [f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={urls}"]


def _login_module(mechanism: str) -> str:
    return f"{_LOGIN_MODULES[mechanism]} required"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

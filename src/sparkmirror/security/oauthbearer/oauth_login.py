"""The OAUTHBEARER login of Java's client properties: which token source they mean.

`sasl.login.callback.handler.class` and `sasl.oauthbearer.jwt.retriever.class` choose the source by
the names of Java's classes, which mean the sources here, or by `module:Class` for a Python class.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping

from sparkmirror.config.secrets.jaas import SASL_JAAS_CONFIG
from sparkmirror.config.secrets.password import Password
from sparkmirror.errors import ConfigError
from sparkmirror.security.login_settings import LoginSettings
from sparkmirror.security.msk_iam.msk_login import IAM_HANDLER, msk_login
from sparkmirror.security.oauthbearer import strimzi
from sparkmirror.security.oauthbearer.allowed_resources import AllowedResources, file_of_url
from sparkmirror.security.oauthbearer.assertion_config import read_assertion
from sparkmirror.security.oauthbearer.custom_login_callback_handler import load_callback
from sparkmirror.security.oauthbearer.oauth_grants import (
    ClientAssertionRetriever,
    ClientSecretRetriever,
    JwtBearerRetriever,
)
from sparkmirror.security.oauthbearer.refresh_schedule import (
    RefreshSchedule,
    read_optional_number,
)
from sparkmirror.security.oauthbearer.shared_sources import shared_token_source
from sparkmirror.security.oauthbearer.token_endpoint import DEFAULT_TIMEOUT_S, TokenEndpoint
from sparkmirror.security.oauthbearer.token_file import TokenFile
from sparkmirror.security.oauthbearer.token_retriever import TokenRetriever
from sparkmirror.security.oauthbearer.unsecured_tokens import OPTION_PREFIX, UnsecuredTokens
from sparkmirror.security.sasl_credentials import TokenLogin, TokenSource

log = logging.getLogger(__name__)

CALLBACK_HANDLER = "sasl.login.callback.handler.class"
JWT_RETRIEVER = "sasl.oauthbearer.jwt.retriever.class"
ENDPOINT_URL = "sasl.oauthbearer.token.endpoint.url"
CLIENT_ID = "sasl.oauthbearer.client.credentials.client.id"
CLIENT_SECRET = "sasl.oauthbearer.client.credentials.client.secret"  # noqa: S105 - a key
SCOPE = "sasl.oauthbearer.scope"
URLENCODE = "sasl.oauthbearer.header.urlencode"

_PACKAGE = "org.apache.kafka.common.security.oauthbearer"
SECURED_HANDLERS = frozenset(
    {
        f"{_PACKAGE}.OAuthBearerLoginCallbackHandler",
        f"{_PACKAGE}.secured.OAuthBearerLoginCallbackHandler",
    }
)
UNSECURED_HANDLER = f"{_PACKAGE}.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler"
STRIMZI_HANDLER = "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler"
_EXTENSION_NAME = re.compile(r"[A-Za-z]+")
_EXTENSION_VALUE = re.compile(r"[\x21-\x7E \t\r\n]+")
_EXTENSION_PREFIX = "extension_"

_unsecured_warnings: set[str] = set()


def oauth_login(settings: LoginSettings) -> TokenLogin:
    """Return the login of the properties. Raises ConfigError that names the key."""
    if settings.properties.get(CALLBACK_HANDLER, "").strip() == IAM_HANDLER:
        return msk_login(settings)
    return TokenLogin(tokens=_token_source(settings))


def _token_source(settings: LoginSettings) -> TokenSource:
    handler = settings.properties.get(CALLBACK_HANDLER, "").strip()
    if ":" in handler:
        AllowedResources.from_environment(settings.environment).require_class(
            CALLBACK_HANDLER, handler
        )
        return _refreshing(settings, load_callback(CALLBACK_HANDLER, handler, settings.options))
    if handler == STRIMZI_HANDLER:
        return _strimzi_source(settings)
    if handler == UNSECURED_HANDLER or (not handler and _has_unsecured_options(settings)):
        return _unsecured_source(settings)
    if handler and handler not in SECURED_HANDLERS:
        known = ", ".join(
            sorted({*SECURED_HANDLERS, UNSECURED_HANDLER, STRIMZI_HANDLER, IAM_HANDLER})
        )
        raise ConfigError.of(
            CALLBACK_HANDLER,
            f"{CALLBACK_HANDLER} {handler} is not supported: use module:Class of a Python class,"
            f" or one of {known}",
        )
    return _secured_source(settings)


def _refreshing(settings: LoginSettings, retriever: TokenRetriever) -> TokenSource:
    schedule = RefreshSchedule.from_properties(settings.properties)
    return shared_token_source(retriever, schedule, read_extensions(settings.options))


# -- tokens without a signature ------------------------------------------------------------------


def _has_unsecured_options(settings: LoginSettings) -> bool:
    return any(name.startswith(OPTION_PREFIX) for name in settings.options)


def _unsecured_source(settings: LoginSettings) -> UnsecuredTokens:
    source = UnsecuredTokens(settings.options)
    if SASL_JAAS_CONFIG not in _unsecured_warnings:
        _unsecured_warnings.add(SASL_JAAS_CONFIG)
        log.warning(
            "%s: the login shows an UNSECURED token, which proves nothing: any client can make"
            " one. Use it in tests only; set %s for a token that a server signs",
            SASL_JAAS_CONFIG, ENDPOINT_URL,
        )  # fmt: skip
    return source


# -- Kafka's own retrievers ----------------------------------------------------------------------


def _secured_source(settings: LoginSettings) -> TokenSource:
    url = settings.properties.get(ENDPOINT_URL, "").strip()
    if not url:
        raise ConfigError.of(
            ENDPOINT_URL, f"{ENDPOINT_URL} is missing: OAUTHBEARER needs a token endpoint"
        )
    AllowedResources.from_environment(settings.environment).require_url(ENDPOINT_URL, url)
    retriever = settings.properties.get(JWT_RETRIEVER, "").strip()
    build = _RETRIEVERS.get(retriever.removeprefix(f"{_PACKAGE}.") or "DefaultJwtRetriever")
    if build is None:
        raise ConfigError.of(
            JWT_RETRIEVER,
            f"{JWT_RETRIEVER} {retriever} is not supported: use one of"
            f" {', '.join(f'{_PACKAGE}.{name}' for name in _RETRIEVERS)}",
        )
    return build(settings, url)


def _default_source(settings: LoginSettings, url: str) -> TokenSource:
    build = _file_source if url.lower().startswith("file:") else _client_credentials_source
    return build(settings, url)


def _file_source(settings: LoginSettings, url: str) -> TokenFile:
    if not url.lower().startswith("file:"):
        raise ConfigError.of(ENDPOINT_URL, f"{ENDPOINT_URL}: {url} is not a file URL")
    extensions = frozenset(read_extensions(settings.options).items())
    return TokenFile(file=file_of_url(url), extensions=extensions)


def _client_credentials_source(settings: LoginSettings, url: str) -> TokenSource:
    endpoint = read_endpoint(settings, url)
    client_id = settings.key_or_option(CLIENT_ID, "clientId")
    scope = settings.key_or_option(SCOPE, "scope")
    assertion = read_assertion(settings, is_needed=False)
    if assertion is not None:
        return _refreshing(
            settings,
            ClientAssertionRetriever(
                endpoint=endpoint, assertion=assertion, client_id=client_id, scope=scope
            ),
        )
    secret = settings.key_or_option(CLIENT_SECRET, "clientSecret")
    for value, key, option in (
        (client_id, CLIENT_ID, "clientId"),
        (secret, CLIENT_SECRET, "clientSecret"),
    ):
        if not value:
            raise ConfigError.of(
                key, f"{key} is missing: set it, or the option {option} of {SASL_JAAS_CONFIG}"
            )
    return _refreshing(
        settings,
        ClientSecretRetriever(
            endpoint=endpoint,
            client_id=client_id,
            client_secret=Password(secret),
            scope=scope,
            is_urlencoded=settings.properties.get(URLENCODE, "").strip().lower() == "true",
        ),
    )


def _jwt_bearer_source(settings: LoginSettings, url: str) -> TokenSource:
    assertion = read_assertion(settings, is_needed=True)
    assert assertion is not None
    return _refreshing(
        settings,
        JwtBearerRetriever(
            endpoint=read_endpoint(settings, url),
            assertion=assertion,
            scope=settings.key_or_option(SCOPE, "scope"),
        ),
    )


_RETRIEVERS: Mapping[str, Callable[[LoginSettings, str], TokenSource]] = {
    "DefaultJwtRetriever": _default_source,
    "ClientCredentialsJwtRetriever": _client_credentials_source,
    "JwtBearerJwtRetriever": _jwt_bearer_source,
    "FileJwtRetriever": _file_source,
}
"""Kafka's classes, without their package."""


def read_endpoint(settings: LoginSettings, url: str) -> TokenEndpoint:
    """Return the endpoint. Its `ssl.*` settings are options of the login module, as in Java."""
    connect_ms = read_optional_number(settings.properties, "sasl.login.connect.timeout.ms")
    read_ms = read_optional_number(settings.properties, "sasl.login.read.timeout.ms")
    endpoint = TokenEndpoint(
        url=url,
        connect_timeout_s=connect_ms / 1000 if connect_ms else DEFAULT_TIMEOUT_S,
        read_timeout_s=read_ms / 1000 if read_ms else DEFAULT_TIMEOUT_S,
        ssl_settings=frozenset(
            (name, value) for name, value in settings.options.items() if name.startswith("ssl.")
        ),
    )
    endpoint.check(ENDPOINT_URL)
    return endpoint


def read_extensions(options: Mapping[str, str]) -> dict[str, str]:
    """Return the SASL extensions: options `extension_<name>`. Raises ConfigError."""
    extensions = {
        name.removeprefix(_EXTENSION_PREFIX): value
        for name, value in options.items()
        if name.startswith(_EXTENSION_PREFIX)
    }
    check_extensions(extensions)
    return extensions


def check_extensions(extensions: Mapping[str, str]) -> None:
    """Raise ConfigError for names and values that Java's client refuses."""
    for name, value in extensions.items():
        if not _EXTENSION_NAME.fullmatch(name) or name == "auth":
            raise ConfigError.of(
                SASL_JAAS_CONFIG,
                f"{SASL_JAAS_CONFIG}: the name of a SASL extension is letters, but not auth",
            )
        if not _EXTENSION_VALUE.fullmatch(value):
            raise ConfigError.of(
                SASL_JAAS_CONFIG,
                f"{SASL_JAAS_CONFIG}: the value of the SASL extension {name} is not plain text",
            )


# -- Strimzi -------------------------------------------------------------------------------------


def _strimzi_source(settings: LoginSettings) -> TokenSource:
    allowed = AllowedResources.from_environment(settings.environment)
    made = strimzi.read_source(settings, allowed)
    if isinstance(made, strimzi.FixedTokens | TokenFile):
        return made
    schedule = RefreshSchedule.from_properties(settings.properties)
    extensions = strimzi.read_extensions(settings)
    check_extensions(extensions)
    return shared_token_source(made, schedule, extensions)

"""The options of Strimzi's JaasClientOauthLoginCallbackHandler.

A token comes, in this order, from `oauth.access.token`, `oauth.access.token.location`,
`oauth.refresh.token` or its `.location`, `oauth.password.grant.*`, a client assertion or the client
secret. The last ones ask the token endpoint `oauth.token.endpoint.uri`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sparkmirror.config.secrets.jaas import SASL_JAAS_CONFIG
from sparkmirror.config.secrets.password import Password
from sparkmirror.errors import ConfigError
from sparkmirror.security.login_settings import LoginSettings
from sparkmirror.security.oauthbearer.allowed_resources import AllowedResources
from sparkmirror.security.oauthbearer.assertion import AssertionFile, read_secret_text
from sparkmirror.security.oauthbearer.oauth_grants import (
    ClientAssertionRetriever,
    ClientSecretRetriever,
    basic_authorization,
)
from sparkmirror.security.oauthbearer.token_endpoint import DEFAULT_TIMEOUT_S, TokenEndpoint
from sparkmirror.security.oauthbearer.token_file import TokenFile
from sparkmirror.security.oauthbearer.token_retriever import RetrievedToken
from sparkmirror.security.sasl_credentials import BearerToken, TokenUnavailable

ENDPOINT_URI = "oauth.token.endpoint.uri"
_EXTENSION_PREFIX = "oauth.sasl.extension."
_SSL_PREFIX = "oauth.ssl."


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedTokens:
    """`oauth.access.token`: a token that is never renewed."""

    value: Password
    extensions: frozenset[tuple[str, str]] = frozenset()
    clock: Callable[[], float] = field(default=time.time, repr=False)

    def token(self, host: str) -> BearerToken:
        """Return the token. Raises TokenUnavailable once it has expired."""
        try:
            token = RetrievedToken.parse(self.value.value, now_s=self.clock())
        except TokenUnavailable as error:
            raise TokenUnavailable(f"oauth.access.token: {error}") from None
        return BearerToken(value=token.value, extensions=dict(self.extensions))


@dataclass(frozen=True, slots=True, kw_only=True)
class UserGrantRetriever:
    """A refresh token, or a user's name and password, that the endpoint exchanges for a token."""

    endpoint: TokenEndpoint
    client_id: str
    client_secret: Password = Password("")
    scope: str = ""
    username: str = ""
    password: Password = Password("")
    refresh_token: Password = Password("")
    refresh_token_file: str = ""

    @property
    def name(self) -> str:
        """The endpoint and the client."""
        return f"token of client {self.client_id} from {self.endpoint.url}"

    def retrieve(self) -> RetrievedToken:
        """Send the grant. Without a secret the client only names itself."""
        form = {"client_id": self.client_id, **self._grant()}
        if self.scope:
            form["scope"] = self.scope
        header: Mapping[str, str] = {}
        if self.client_secret.value:
            header = basic_authorization(self.client_id, self.client_secret)
        secrets = [self.client_secret, self.password, Password(form.get("refresh_token", ""))]
        return self.endpoint.retrieve(form, header, secrets)

    def _grant(self) -> dict[str, str]:
        if self.username:
            return {
                "grant_type": "password",
                "username": self.username,
                "password": self.password.value,
            }
        token = self.refresh_token.value
        if self.refresh_token_file:
            token = read_secret_text(self.refresh_token_file, "the refresh token file").strip()
        return {"grant_type": "refresh_token", "refresh_token": token}


StrimziSource = (
    FixedTokens | TokenFile | UserGrantRetriever | ClientAssertionRetriever | ClientSecretRetriever
)


def read_source(settings: LoginSettings, allowed: AllowedResources) -> StrimziSource:
    """Return the source or the retriever of the options. Raises ConfigError."""
    options = settings.options
    extensions = frozenset(read_extensions(settings).items())
    if options.get("oauth.access.token"):
        return FixedTokens(value=Password(options["oauth.access.token"]), extensions=extensions)
    token_file = options.get("oauth.access.token.location", "")
    if token_file:
        allowed.require_file(SASL_JAAS_CONFIG, token_file)
        return TokenFile(file=token_file, extensions=extensions)
    return _grant(options, _endpoint(options, allowed), allowed)


def read_extensions(settings: LoginSettings) -> dict[str, str]:
    """Return the SASL extensions: options `oauth.sasl.extension.<name>`."""
    return {
        name.removeprefix(_EXTENSION_PREFIX): value
        for name, value in settings.options.items()
        if name.startswith(_EXTENSION_PREFIX)
    }


def _grant(
    options: Mapping[str, str], endpoint: TokenEndpoint, allowed: AllowedResources
) -> StrimziSource:
    client_id = options.get("oauth.client.id", "")
    if not client_id:
        raise ConfigError.of(SASL_JAAS_CONFIG, f"{SASL_JAAS_CONFIG} lacks oauth.client.id")
    secret = Password(options.get("oauth.client.secret", ""))
    scope = options.get("oauth.scope", "")
    refresh_file = options.get("oauth.refresh.token.location", "")
    username = options.get("oauth.password.grant.username", "")
    if options.get("oauth.refresh.token") or refresh_file or username:
        if refresh_file:
            allowed.require_file(SASL_JAAS_CONFIG, refresh_file)
        return UserGrantRetriever(
            endpoint=endpoint,
            client_id=client_id,
            client_secret=secret,
            scope=scope,
            username=username,
            password=Password(options.get("oauth.password.grant.password", "")),
            refresh_token=Password(options.get("oauth.refresh.token", "")),
            refresh_token_file=refresh_file,
        )
    audience = options.get("oauth.audience", "")
    more = frozenset({("audience", audience)} if audience else ())
    assertion_file = options.get("oauth.client.assertion.location", "")
    if assertion_file:
        allowed.require_file(SASL_JAAS_CONFIG, assertion_file)
        return ClientAssertionRetriever(
            endpoint=endpoint,
            assertion=AssertionFile(file=assertion_file),
            client_id=client_id,
            scope=scope,
            more=more,
        )
    if not secret.value:
        raise ConfigError.of(SASL_JAAS_CONFIG, f"{SASL_JAAS_CONFIG} lacks oauth.client.secret")
    return ClientSecretRetriever(
        endpoint=endpoint, client_id=client_id, client_secret=secret, scope=scope, more=more
    )


def _endpoint(options: Mapping[str, str], allowed: AllowedResources) -> TokenEndpoint:
    url = options.get(ENDPOINT_URI, "").strip()
    if not url:
        raise ConfigError.of(SASL_JAAS_CONFIG, f"{SASL_JAAS_CONFIG} lacks {ENDPOINT_URI}")
    allowed.require_url(ENDPOINT_URI, url)
    endpoint = TokenEndpoint(
        url=url,
        connect_timeout_s=_seconds(options, "oauth.connect.timeout.seconds"),
        read_timeout_s=_seconds(options, "oauth.read.timeout.seconds"),
        ssl_settings=frozenset(
            (name.removeprefix("oauth."), value)
            for name, value in options.items()
            if name.startswith(_SSL_PREFIX)
        ),
    )
    endpoint.check(ENDPOINT_URI)
    return endpoint


def _seconds(options: Mapping[str, str], name: str) -> float:
    text = options.get(name, "").strip()
    if not text:
        return DEFAULT_TIMEOUT_S
    if not text.isdecimal() or not int(text):
        raise ConfigError.of(SASL_JAAS_CONFIG, f"{SASL_JAAS_CONFIG}: {name} is not a number")
    return float(text)

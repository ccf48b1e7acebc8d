"""OAuth tokens, for the SASL mechanism OAUTHBEARER: the `sasl.oauthbearer.*` keys."""

from __future__ import annotations

from typing import Final

from sparkmirror.config.definition.config_def import LOW, MEDIUM, ConfigDef, ConfigKey
from sparkmirror.config.definition.validators import CaseInsensitiveValidString, Range, ValidList
from sparkmirror.config.definition.value_types import Type
from sparkmirror.config.tables.no_effect_reasons import (
    TOKENS,
)

_PACKAGE = "org.apache.kafka.common.security.oauthbearer"

_TOKENS: Final = ConfigDef(
    ConfigKey(
        "sasl.oauthbearer.jwt.retriever.class",
        Type.CLASS,
        f"{_PACKAGE}.DefaultJwtRetriever",
        MEDIUM,
        "Where a token of OAUTHBEARER comes from, by the name of Kafka's class: "
        "DefaultJwtRetriever, ClientCredentialsJwtRetriever, JwtBearerJwtRetriever or "
        "FileJwtRetriever.",
    ),
    ConfigKey(
        "sasl.oauthbearer.jwt.validator.class",
        Type.CLASS,
        f"{_PACKAGE}.DefaultJwtValidator",
        MEDIUM,
        TOKENS,
    ),
    ConfigKey(
        "sasl.oauthbearer.scope",
        Type.STRING,
        None,
        MEDIUM,
        "The scope that is requested for a token.",
    ),
    ConfigKey(
        "sasl.oauthbearer.client.credentials.client.id",
        Type.STRING,
        None,
        MEDIUM,
        "The id of the client for the client credentials grant. The option clientId of "
        "sasl.jaas.config is read without it.",
    ),
    ConfigKey(
        "sasl.oauthbearer.client.credentials.client.secret",
        Type.PASSWORD,
        None,
        MEDIUM,
        "The secret of the client. The option clientSecret of sasl.jaas.config is read without it.",
    ),
)

ASSERTION: Final = ConfigDef(
    ConfigKey(
        "sasl.oauthbearer.assertion.algorithm",
        Type.STRING,
        "RS256",
        MEDIUM,
        "How an assertion is signed.",
        validator=CaseInsensitiveValidString(("ES256", "RS256")),
    ),
    ConfigKey(
        "sasl.oauthbearer.assertion.claim.aud",
        Type.STRING,
        None,
        MEDIUM,
        "The audience of an assertion.",
    ),
    ConfigKey(
        "sasl.oauthbearer.assertion.claim.exp.seconds",
        Type.INT,
        300,
        LOW,
        "The lifetime of an assertion, in seconds.",
        validator=Range(0, 86400),
    ),
    ConfigKey(
        "sasl.oauthbearer.assertion.claim.iss",
        Type.STRING,
        None,
        MEDIUM,
        "The issuer of an assertion. With it, client credentials use an assertion instead of a "
        "secret.",
    ),
    ConfigKey(
        "sasl.oauthbearer.assertion.claim.jti.include",
        Type.BOOLEAN,
        False,
        MEDIUM,
        "Whether each assertion has an id of its own.",
    ),
    ConfigKey(
        "sasl.oauthbearer.assertion.claim.nbf.seconds",
        Type.INT,
        60,
        LOW,
        "The seconds before its creation from which on an assertion is valid.",
        validator=Range(0, 3600),
    ),
    ConfigKey(
        "sasl.oauthbearer.assertion.claim.sub",
        Type.STRING,
        None,
        MEDIUM,
        "The subject of an assertion.",
    ),
    ConfigKey(
        "sasl.oauthbearer.assertion.file",
        Type.STRING,
        None,
        MEDIUM,
        "A file with a ready assertion. It is read for each request. Must be allowed by "
        "sparkmirror.oauthbearer.allowed.files.",
    ),
    ConfigKey(
        "sasl.oauthbearer.assertion.private.key.file",
        Type.STRING,
        None,
        MEDIUM,
        "The private key for assertions, as PEM. Must be allowed by "
        "sparkmirror.oauthbearer.allowed.files.",
    ),
    ConfigKey(
        "sasl.oauthbearer.assertion.private.key.passphrase",
        Type.PASSWORD,
        None,
        MEDIUM,
        "The passphrase of that key.",
    ),
    ConfigKey(
        "sasl.oauthbearer.assertion.template.file",
        Type.STRING,
        None,
        MEDIUM,
        "A JSON file with more members of header and payload of an assertion. Must be allowed "
        "by sparkmirror.oauthbearer.allowed.files.",
    ),
)

_PROVIDER: Final = ConfigDef(
    ConfigKey(
        "sasl.oauthbearer.scope.claim.name",
        Type.STRING,
        "scope",
        LOW,
        TOKENS,
    ),
    ConfigKey(
        "sasl.oauthbearer.sub.claim.name",
        Type.STRING,
        "sub",
        LOW,
        TOKENS,
    ),
    ConfigKey(
        "sasl.oauthbearer.token.endpoint.url",
        Type.STRING,
        None,
        MEDIUM,
        "The token endpoint, http or https; or a file URL of a file with a token, which is read "
        "for each login. Must be allowed by sparkmirror.oauthbearer.allowed.urls.",
    ),
    ConfigKey("sasl.oauthbearer.jwks.endpoint.url", Type.STRING, None, MEDIUM, TOKENS),
    ConfigKey("sasl.oauthbearer.jwks.endpoint.refresh.ms", Type.LONG, 3600000, LOW, TOKENS),
    ConfigKey("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", Type.LONG, 10000, LOW, TOKENS),
    ConfigKey("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", Type.LONG, 100, LOW, TOKENS),
    ConfigKey("sasl.oauthbearer.clock.skew.seconds", Type.INT, 30, LOW, TOKENS),
    ConfigKey(
        "sasl.oauthbearer.expected.audience",
        Type.LIST,
        (),
        LOW,
        TOKENS,
        validator=ValidList(),
    ),
    ConfigKey("sasl.oauthbearer.expected.issuer", Type.STRING, None, LOW, TOKENS),
    ConfigKey(
        "sasl.oauthbearer.header.urlencode",
        Type.BOOLEAN,
        False,
        LOW,
        "Whether id and secret are URL-encoded in the Authorization header.",
    ),
)

OAUTHBEARER: Final = _TOKENS + ASSERTION + _PROVIDER

"""OAuth tokens, for the SASL mechanism OAUTHBEARER: the `sasl.oauthbearer.*` keys."""

from __future__ import annotations

from typing import Final

from sparkmirror.config.definition.config_def import LOW, MEDIUM, ConfigDef, ConfigKey
from sparkmirror.config.definition.validators import CaseInsensitiveValidString, Range, ValidList
from sparkmirror.config.definition.value_types import Type

_PACKAGE = "org.apache.kafka.common.security.oauthbearer"
_BROKER_SIDE = "Read by those who check tokens, not by those who send them; no effect in a mirror."

_TOKENS: Final = ConfigDef(
    ConfigKey(
        "sasl.oauthbearer.jwt.retriever.class",
        Type.CLASS,
        f"{_PACKAGE}.DefaultJwtRetriever",
        MEDIUM,
        "Java class that gets hold of tokens; the default chooses by the other keys: client "
        "credentials for an http address, the file itself for a file address.",
    ),
    ConfigKey(
        "sasl.oauthbearer.jwt.validator.class",
        Type.CLASS,
        f"{_PACKAGE}.DefaultJwtValidator",
        MEDIUM,
        "Java class that looks a token over before it is sent. Leave it at the default.",
    ),
    ConfigKey(
        "sasl.oauthbearer.scope",
        Type.STRING,
        None,
        MEDIUM,
        "Scope to ask for when a token is fetched. Set it if the identity provider hands out "
        "tokens per scope.",
    ),
    ConfigKey(
        "sasl.oauthbearer.client.credentials.client.id",
        Type.STRING,
        None,
        MEDIUM,
        "Name of this client at the identity provider, for the client credentials grant. "
        "Replaces clientId in the JAAS line.",
    ),
    ConfigKey(
        "sasl.oauthbearer.client.credentials.client.secret",
        Type.PASSWORD,
        None,
        MEDIUM,
        "Secret that goes with the client's name at the identity provider. Replaces clientSecret "
        "in the JAAS line.",
    ),
)

_ASSERTION: Final = ConfigDef(
    ConfigKey(
        "sasl.oauthbearer.assertion.algorithm",
        Type.STRING,
        "RS256",
        MEDIUM,
        "Algorithm that signs the assertion of the jwt-bearer grant: RS256 for RSA keys, ES256 "
        "for elliptic curves.",
        validator=CaseInsensitiveValidString(("ES256", "RS256")),
    ),
    ConfigKey(
        "sasl.oauthbearer.assertion.claim.aud",
        Type.STRING,
        None,
        MEDIUM,
        "Claim aud of the assertion: for whom it is meant, usually the identity provider.",
    ),
    ConfigKey(
        "sasl.oauthbearer.assertion.claim.exp.seconds",
        Type.INT,
        300,
        LOW,
        "How long an assertion is valid after it was made, in seconds.",
        validator=Range(0, 86400),
    ),
    ConfigKey(
        "sasl.oauthbearer.assertion.claim.iss",
        Type.STRING,
        None,
        MEDIUM,
        "Claim iss of the assertion: who made it.",
    ),
    ConfigKey(
        "sasl.oauthbearer.assertion.claim.jti.include",
        Type.BOOLEAN,
        False,
        MEDIUM,
        "Whether each assertion carries an id of its own (claim jti), for providers that refuse "
        "to see one twice.",
    ),
    ConfigKey(
        "sasl.oauthbearer.assertion.claim.nbf.seconds",
        Type.INT,
        60,
        LOW,
        "How far before its making an assertion is already valid, in seconds; covers clocks that "
        "differ.",
        validator=Range(0, 3600),
    ),
    ConfigKey(
        "sasl.oauthbearer.assertion.claim.sub",
        Type.STRING,
        None,
        MEDIUM,
        "Claim sub of the assertion: about whom it speaks, usually the service account.",
    ),
    ConfigKey(
        "sasl.oauthbearer.assertion.file",
        Type.STRING,
        None,
        MEDIUM,
        "File with a ready-made assertion, instead of making one from a private key.",
    ),
    ConfigKey(
        "sasl.oauthbearer.assertion.private.key.file",
        Type.STRING,
        None,
        MEDIUM,
        "File with the private key (PEM) that signs assertions.",
    ),
    ConfigKey(
        "sasl.oauthbearer.assertion.private.key.passphrase",
        Type.PASSWORD,
        None,
        MEDIUM,
        "Password of the file with the private key, if it has one.",
    ),
    ConfigKey(
        "sasl.oauthbearer.assertion.template.file",
        Type.STRING,
        None,
        MEDIUM,
        "JSON file with further headers and claims to put into each assertion.",
    ),
)

_PROVIDER: Final = ConfigDef(
    ConfigKey(
        "sasl.oauthbearer.scope.claim.name",
        Type.STRING,
        "scope",
        LOW,
        "Name of the claim that holds a token's scope. Change it only for a provider that calls "
        "it otherwise.",
    ),
    ConfigKey(
        "sasl.oauthbearer.sub.claim.name",
        Type.STRING,
        "sub",
        LOW,
        "Name of the claim that holds the principal. Change it only for a provider that calls it "
        "otherwise.",
    ),
    ConfigKey(
        "sasl.oauthbearer.token.endpoint.url",
        Type.STRING,
        None,
        MEDIUM,
        "Address that hands out tokens, or file: and a path to read the token from that file.",
    ),
    ConfigKey("sasl.oauthbearer.jwks.endpoint.url", Type.STRING, None, MEDIUM, _BROKER_SIDE),
    ConfigKey("sasl.oauthbearer.jwks.endpoint.refresh.ms", Type.LONG, 3600000, LOW, _BROKER_SIDE),
    ConfigKey(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", Type.LONG, 10000, LOW, _BROKER_SIDE
    ),
    ConfigKey("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", Type.LONG, 100, LOW, _BROKER_SIDE),
    ConfigKey("sasl.oauthbearer.clock.skew.seconds", Type.INT, 30, LOW, _BROKER_SIDE),
    ConfigKey(
        "sasl.oauthbearer.expected.audience",
        Type.LIST,
        (),
        LOW,
        _BROKER_SIDE,
        validator=ValidList(),
    ),
    ConfigKey("sasl.oauthbearer.expected.issuer", Type.STRING, None, LOW, _BROKER_SIDE),
    ConfigKey(
        "sasl.oauthbearer.header.urlencode",
        Type.BOOLEAN,
        False,
        LOW,
        "Whether client id and secret are URL-encoded before they go into the Authorization "
        "header. Needed for providers that follow RFC 6749 to the letter.",
    ),
)

OAUTHBEARER: Final = _TOKENS + _ASSERTION + _PROVIDER

"""Authentication of type `oauth` as the options of Strimzi's login callback handler. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from sparkmirror.cli.strimzi.jaas_line import jaas_line
from sparkmirror.cli.strimzi.remarks import StrimziRemark
from sparkmirror.cli.strimzi.resource_to_properties.left_out_fields import unread_remarks
from sparkmirror.cli.strimzi.resource_to_properties.resource_fields import ResourceFields
from sparkmirror.cli.strimzi.resource_to_properties.strimzi_placeholders import StrimziPlaceholders
from sparkmirror.cli.strimzi.resource_to_properties.trusted_certificates import certificate_keys
from sparkmirror.config.secrets.jaas import SASL_JAAS_CONFIG, parse_login_module
from sparkmirror.errors import ConfigError
from sparkmirror.security.oauthbearer.allowed_resources import ALLOWED_FILES, ALLOWED_URLS

_MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
_HANDLER: Final = "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler"
_ENDPOINT: Final = "oauth.token.endpoint.uri"
_TEXTS: Final = {
    "clientId": "oauth.client.id",
    "username": "oauth.password.grant.username",
    "tokenEndpointUri": _ENDPOINT,
    "scope": "oauth.scope",
    "audience": "oauth.audience",
    "connectTimeoutSeconds": "oauth.connect.timeout.seconds",
    "readTimeoutSeconds": "oauth.read.timeout.seconds",
}
_SECRETS: Final = {
    "clientSecret": ("key", "oauth.client.secret"),
    "accessToken": ("key", "oauth.access.token"),
    "refreshToken": ("key", "oauth.refresh.token"),
    "passwordSecret": ("password", "oauth.password.grant.password"),
}
"""By field: the name of the field that names the key, and the option."""
_LOCATIONS: Final = {
    "accessTokenLocation": "oauth.access.token.location",
    "clientAssertionLocation": "oauth.client.assertion.location",
}
_FILE_OPTIONS: Final = frozenset({*_LOCATIONS.values(), "oauth.refresh.token.location"})
_TOKENS: Final = frozenset({"oauth.access.token", "oauth.access.token.location"})
_GRANTS: Final = frozenset(
    {
        *("oauth.client.secret", "oauth.client.assertion.location", "oauth.refresh.token"),
        "oauth.password.grant.password",
    }
)
_INCOMPLETE: Final = (
    "write accessToken or accessTokenLocation; or tokenEndpointUri and clientId with clientSecret, "
    "clientAssertion, clientAssertionLocation, refreshToken, or username and passwordSecret"
)
_ONE_STORE: Final = (
    "the login trusts the certificates of one file: add the other certificates to it"
)


def oauth_login(
    authentication: ResourceFields,
    placeholders: StrimziPlaceholders,
    remarks: list[StrimziRemark],
) -> dict[str, str]:
    """Return the properties of the login. Adds to `remarks` what is left out."""
    options = {
        option: placeholders.translated(text, authentication.path_of(name))
        for name, option in _TEXTS.items()
        if (text := authentication.text(name)) is not None
    }
    secrets = placeholders.secrets
    for name, (key, option) in _SECRETS.items():
        if name in authentication:
            named = authentication.part(name)
            options[option] = secrets.placeholder(
                named.required_text("secretName"), named.required_text(key)
            )
            remarks += unread_remarks(named)
    for name, option in _LOCATIONS.items():
        if (location := authentication.text(name)) is not None:
            options[option] = placeholders.path(location, authentication.path_of(name))
    if "clientAssertion" in authentication:
        named = authentication.part("clientAssertion")
        options["oauth.client.assertion.location"] = secrets.path(
            named.required_text("secretName"), named.required_text("key")
        )
    options |= _tls_options(authentication, placeholders, remarks)
    for name, value in authentication.settings("saslExtensions").items():
        options[f"oauth.sasl.extension.{name}"] = value
    has_grant = {_ENDPOINT, "oauth.client.id"} <= options.keys() and _GRANTS & options.keys()
    if not has_grant and not _TOKENS & options.keys():
        authentication.fault("", _INCOMPLETE)
    return {
        "sasl.mechanism": "OAUTHBEARER",
        SASL_JAAS_CONFIG: jaas_line(_MODULE, options),
        "sasl.login.callback.handler.class": _HANDLER,
    }


def _tls_options(
    authentication: ResourceFields,
    placeholders: StrimziPlaceholders,
    remarks: list[StrimziRemark],
) -> dict[str, str]:
    """Return how the login trusts the token endpoint."""
    options = {}
    certificates = authentication.items("tlsTrustedCertificates")
    keys = [
        key
        for certificate in certificates
        for key in certificate_keys(certificate, placeholders.secrets, remarks)
    ]
    if keys:
        options["oauth.ssl.truststore.type"] = "PEM"
        options["oauth.ssl.truststore.location"] = placeholders.secrets.path(*keys[0])
    for secret, key in keys[1:]:
        placeholders.secrets.path(secret, key)
        field = authentication.path_of("tlsTrustedCertificates")
        remarks.append(StrimziRemark(field, f"{secret}/{key}: {_ONE_STORE}"))
    if authentication.text("disableTlsHostnameVerification") == "true":
        options["oauth.ssl.endpoint.identification.algorithm"] = ""
    return options


def allowed_resources(clusters: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return the lists of URLs and files that the logins of clusters use.

    A process refuses a login that uses others: the configs of connectors may come over REST. Those
    of a resource come from its operator.
    """
    urls: list[str] = []
    files: list[str] = []
    for cluster in clusters:
        options = _options_of_strimzi(cluster)
        urls += [cluster.get("sasl.oauthbearer.token.endpoint.url", ""), options.get(_ENDPOINT, "")]
        files += [options.get(option, "") for option in sorted(_FILE_OPTIONS)]
    lists = {ALLOWED_URLS: urls, ALLOWED_FILES: files}
    return {
        key: ",".join(dict.fromkeys(filter(None, values)))
        for key, values in lists.items()
        if any(values)
    }


def _options_of_strimzi(cluster: Mapping[str, str]) -> Mapping[str, str]:
    if cluster.get("sasl.login.callback.handler.class") != _HANDLER:
        return {}
    try:
        return parse_login_module(cluster.get(SASL_JAAS_CONFIG, ""))[0].options
    except ConfigError:
        return {}

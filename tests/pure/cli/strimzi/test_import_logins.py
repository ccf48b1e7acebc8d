"""Logins of type oauth and custom: expressed, or listed with what to do instead."""

from __future__ import annotations

from typing import Any

import pytest

from sparkmirror.cli.strimzi.resource_to_properties.kubernetes_resources import (
    ImportedMirror,
    import_resources,
)
from sparkmirror.cli.strimzi.resource_to_properties.kubernetes_secret_files import SecretFiles
from sparkmirror.config.secrets.jaas import parse_login_module
from sparkmirror.errors import ConfigError
from sparkmirror.security.login_settings import LoginSettings
from sparkmirror.security.oauthbearer import strimzi
from sparkmirror.security.oauthbearer.allowed_resources import (
    AllowedResources,
    with_allowed_resources,
)

ENDPOINT = "https://sso.example.com/token"
CLIENT = {"type": "oauth", "clientId": "mirror", "tokenEndpointUri": ENDPOINT}
LOGIN = "spec.clusters[0].authentication"


def imported(authentication: dict[str, Any]) -> ImportedMirror:
    resource = {
        "apiVersion": "kafka.strimzi.io/v1beta2",
        "kind": "KafkaMirrorMaker2",
        "metadata": {"name": "m"},
        "spec": {
            "connectCluster": "t",
            "clusters": [
                {"alias": "s", "bootstrapServers": "s:9092", "authentication": authentication},
                {"alias": "t", "bootstrapServers": "t:9092"},
            ],
            "mirrors": [{"sourceCluster": "s", "targetCluster": "t", "sourceConnector": {}}],
        },
    }
    return import_resources([resource], SecretFiles(directory="/etc/secrets"), "m.yaml")


def options_of(found: ImportedMirror) -> dict[str, str]:
    return dict(parse_login_module(found.properties["s.sasl.jaas.config"])[0].options)


@pytest.mark.parametrize(
    ("fields", "options"),
    [
        (
            {"username": "u", "passwordSecret": {"secretName": "p", "password": "k"}},
            {
                "oauth.password.grant.username": "u",
                "oauth.password.grant.password": "${dir:/etc/secrets/p:k}",
            },
        ),
        (
            {"clientAssertion": {"secretName": "a", "key": "jwt"}},
            {"oauth.client.assertion.location": "/etc/secrets/a/jwt"},
        ),
        (
            {"clientAssertionLocation": "/var/run/jwt"},
            {"oauth.client.assertion.location": "/var/run/jwt"},
        ),
        ({"accessTokenLocation": "/var/run/t"}, {"oauth.access.token.location": "/var/run/t"}),
        (
            {
                "refreshToken": {"secretName": "r", "key": "k"},
                "tlsTrustedCertificates": [{"secretName": "ca", "certificate": "ca.crt"}],
                "disableTlsHostnameVerification": True,
                "connectTimeoutSeconds": 5,
                "readTimeoutSeconds": 6,
                "saslExtensions": {"tenant": "x"},
            },
            {
                "oauth.refresh.token": "${dir:/etc/secrets/r:k}",
                "oauth.connect.timeout.seconds": "5",
                "oauth.read.timeout.seconds": "6",
                "oauth.ssl.truststore.type": "PEM",
                "oauth.ssl.truststore.location": "/etc/secrets/ca/ca.crt",
                "oauth.ssl.endpoint.identification.algorithm": "",
                "oauth.sasl.extension.tenant": "x",
            },
        ),
    ],
    ids=["password", "assertion", "assertion file", "token file", "refresh token"],
)
def test_grant_of_oauth_is_an_option_of_strimzis_handler(
    fields: dict[str, Any], options: dict[str, str]
) -> None:
    found = imported(CLIENT | fields)
    basic = {"oauth.client.id": "mirror", "oauth.token.endpoint.uri": ENDPOINT}
    assert options_of(found) == basic | options
    assert not [one for one in found.remarks if "no such field" in one.text]


@pytest.mark.parametrize(
    "fields",
    [
        {"clientSecret": {"secretName": "c", "key": "k"}},
        {"username": "u", "passwordSecret": {"secretName": "p", "password": "k"}},
        {"clientAssertion": {"secretName": "a", "key": "jwt"}},
        {"accessTokenLocation": "/var/run/t"},
    ],
)
def test_imported_login_may_use_its_endpoint_and_its_files(fields: dict[str, Any]) -> None:
    """A process refuses endpoints and files that its own file does not list."""
    found = imported(CLIENT | fields)
    assert found.properties["sparkmirror.oauthbearer.allowed.urls"] == ENDPOINT
    settings = LoginSettings(mechanism="OAUTHBEARER", options=options_of(found))
    allowed = AllowedResources.from_environment(with_allowed_resources(found.properties, {}))
    strimzi.read_source(settings, allowed)  # raises if the lists lack something
    with pytest.raises(ConfigError, match="logins may not use"):
        strimzi.read_source(settings, AllowedResources())


def test_second_certificate_of_the_token_endpoint_is_listed() -> None:
    certificates = [{"secretName": "ca", "certificate": key} for key in ("one.crt", "two.crt")]
    secret = {"clientSecret": {"secretName": "c", "key": "k"}}
    found = imported(CLIENT | secret | {"tlsTrustedCertificates": certificates})
    assert options_of(found)["oauth.ssl.truststore.location"] == "/etc/secrets/ca/one.crt"
    (remark,) = [one for one in found.remarks if one.field == f"{LOGIN}.tlsTrustedCertificates"]
    assert remark.text.startswith("ca/two.crt: the login trusts the certificates of one file")


@pytest.mark.parametrize(
    "field",
    [
        *("grantType", "httpRetries", "httpRetryPauseMs", "maxTokenExpirySeconds"),
        *("accessTokenIsJwt", "enableMetrics", "includeAcceptHeader", "clientAssertionType"),
    ],
)
def test_field_of_oauth_without_an_option_is_listed_with_a_reason(field: str) -> None:
    found = imported(CLIENT | {"clientSecret": {"secretName": "c", "key": "k"}, field: 1})
    (remark,) = [one for one in found.remarks if one.field == f"{LOGIN}.{field}"]
    assert "no such field" not in remark.text


def test_oauth_without_any_grant_is_a_fault() -> None:
    with pytest.raises(ConfigError, match=r"authentication: write accessToken"):
        imported(CLIENT)


def test_custom_login_has_what_strimzi_reads() -> None:
    config = {
        "sasl.mechanism": "AWS_MSK_IAM",
        "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
        "ssl.truststore.location": "/mnt/ca.jks",
    }
    found = imported({"type": "custom", "sasl": True, "config": config})
    assert found.properties["s.security.protocol"] == "SASL_PLAINTEXT"
    assert found.properties["s.sasl.mechanism"] == "AWS_MSK_IAM"
    assert found.properties["s.sasl.jaas.config"] == config["sasl.jaas.config"]
    assert "s.ssl.truststore.location" not in found.properties
    (remark,) = [one for one in found.remarks if one.field.startswith(LOGIN)]
    assert remark.field == f"{LOGIN}.config.ssl.truststore.location"
    assert "begin with sasl. or ssl.keystore." in remark.text


def test_custom_login_with_strimzis_handler_may_use_its_endpoint() -> None:
    handler = "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler"
    config = {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.login.callback.handler.class": handler,
        "sasl.jaas.config": (
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
            f'oauth.client.id="m" oauth.token.endpoint.uri="{ENDPOINT}" '
            'oauth.client.secret="${strimzisecrets:ns/sso:secret}";'
        ),
    }
    found = imported({"type": "custom", "sasl": True, "config": config})
    assert found.properties["sparkmirror.oauthbearer.allowed.urls"] == ENDPOINT
    assert options_of(found)["oauth.client.secret"] == "${dir:/etc/secrets/sso:secret}"


def test_custom_login_that_cannot_be_read_is_a_fault_without_its_text() -> None:
    config = {"sasl.mechanism": "PLAIN", "sasl.jaas.config": "a.Module needed password=s3cret;"}
    with pytest.raises(ConfigError, match="sasl.jaas.config") as caught:
        imported({"type": "custom", "sasl": True, "config": config})
    assert "s3cret" not in str(caught.value)


def test_client_certificate_without_tls_is_listed() -> None:
    named = {"secretName": "u", "certificate": "user.crt", "key": "user.key"}
    found = imported({"type": "tls", "certificateAndKey": named})
    assert "s.security.protocol" not in found.properties
    assert (LOGIN, "a client certificate has no effect without tls") in found.remarks

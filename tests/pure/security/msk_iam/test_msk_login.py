"""AWS IAM logins: AWS's library signs, an independent check verifies."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sparkmirror.errors import ConfigError
from sparkmirror.security.client_security import ClientSecurity
from sparkmirror.security.msk_iam.broker_region import region_of_host
from sparkmirror.security.sasl_credentials import TokenLogin, TokenUnavailable
from tests.support.security.msk_iam_token import TokenRefused, verify_token
from tests.support.security.token_server import TokenServer, running_token_server

HOST = "b-1.demo.abc123.c2.kafka.us-east-2.amazonaws.com"
IAM_MODULE = "software.amazon.msk.auth.iam.IAMLoginModule"
OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
IAM_HANDLER = "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler"
ROLE = "arn:aws:iam::123456789012:role/mirror"
STS_ANSWER = """<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<AssumeRoleResult><Credentials><AccessKeyId>ASIAROLE</AccessKeyId>
<SecretAccessKey>role-secret</SecretAccessKey><SessionToken>role-session</SessionToken>
<Expiration>2100-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult>
</AssumeRoleResponse>"""


@pytest.fixture(autouse=True)
def no_aws_settings_of_this_host(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[pytest.MonkeyPatch]:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIADUMMY")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "dummy-secret")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    yield monkeypatch


def iam_login(options: str = "") -> TokenLogin:
    """As the tutorial's files write it."""
    made = ClientSecurity.from_properties(
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "AWS_MSK_IAM",
            "sasl.jaas.config": f"{IAM_MODULE} required {options};",
            "sasl.client.callback.handler.class": (
                "software.amazon.msk.auth.iam.IAMClientCallbackHandler"
            ),
        },
        {},
    ).login
    assert isinstance(made, TokenLogin)
    return made


def verified(token: str, region: str, secrets: dict[str, str] | None = None) -> str:
    keys = {"AKIADUMMY": "dummy-secret"} if secrets is None else secrets
    return verify_token(token, region=region, secrets=keys, now=datetime.now(UTC))


def test_the_login_of_the_tutorial_signs_for_the_region_of_the_broker() -> None:
    login = iam_login()
    assert login.mechanism == "OAUTHBEARER"
    token = login.tokens.token(HOST).value.value
    assert verified(token, "us-east-2") == "AKIADUMMY"
    other = login.tokens.token(HOST.replace("us-east-2", "eu-west-1")).value.value
    assert verified(other, "eu-west-1") == "AKIADUMMY"
    with pytest.raises(TokenRefused):
        verified(token, "eu-west-1")
    with pytest.raises(TokenRefused):
        verified(token, "us-east-2", {"AKIADUMMY": "another"})
    assert login.tokens.token(HOST).value.value == token
    assert iam_login() == login


def test_the_oauth_handler_of_aws_means_the_same_login() -> None:
    login = ClientSecurity.from_properties(
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": f"{OAUTH_MODULE} required;",
            "sasl.login.callback.handler.class": IAM_HANDLER,
        },
        {},
    ).login
    assert login == iam_login()


@pytest.mark.parametrize(
    ("host", "region"),
    [
        (HOST, "us-east-2"),
        ("B-2-PUBLIC.demo.abc.c3.kafka.eu-central-1.amazonaws.com", "eu-central-1"),
        ("boot-abc.c1.kafka-serverless.ap-southeast-1.amazonaws.com", "ap-southeast-1"),
        ("b-1.demo.abc.c2.kafka.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("b-1.demo.abc.c2.kafka.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
        ("kafka.internal.example.com", ""),
        ("kafka.us-east-1.amazonaws.com.evil.example", ""),
        ("127.0.0.1", ""),
    ],
)
def test_the_region_is_a_part_of_the_brokers_name(host: str, region: str) -> None:
    assert region_of_host(host) == region


def test_a_broker_without_a_region_in_its_name_takes_the_option_then_the_environment(
    no_aws_settings_of_this_host: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(TokenUnavailable, match="set AWS_REGION, or the option awsRegion"):
        iam_login().tokens.token("kafka.internal")
    no_aws_settings_of_this_host.setenv("AWS_DEFAULT_REGION", "eu-north-1")
    token = iam_login().tokens.token("kafka.internal").value.value
    assert verified(token, "eu-north-1")
    no_aws_settings_of_this_host.setenv("AWS_REGION", "eu-south-1")
    token = iam_login().tokens.token("kafka.internal").value.value
    assert verified(token, "eu-south-1")
    token = iam_login('awsRegion="sa-east-1"').tokens.token("kafka.internal").value.value
    assert verified(token, "sa-east-1")


def test_a_profile_signs_with_its_own_key(tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text(
        "[other]\naws_access_key_id=AKIAPROFILE\naws_secret_access_key=profile-secret\n"
    )
    token = iam_login('awsProfileName="other"').tokens.token(HOST).value.value
    assert verified(token, "us-east-2", {"AKIAPROFILE": "profile-secret"}) == "AKIAPROFILE"
    with pytest.raises(TokenUnavailable, match=r"missing.*check the AWS credentials"):
        iam_login('awsProfileName="missing"').tokens.token(HOST)


def test_a_role_is_assumed_with_its_session_name_and_external_id(
    no_aws_settings_of_this_host: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="sparkmirror")
    with running_token_server() as sts:
        sts.body = STS_ANSWER.encode()
        no_aws_settings_of_this_host.setenv("AWS_ENDPOINT_URL_STS", sts.url)
        login = iam_login(
            f'awsRoleArn="{ROLE}" awsRoleExternalId="s3cret-id" awsStsRegion="eu-west-1"'
        )
        token = login.tokens.token(HOST).value.value
    assert verified(token, "us-east-2", {"ASIAROLE": "role-secret"}) == "ASIAROLE"
    (request,) = sts.requests
    assert request.form["RoleArn"] == ROLE
    assert request.form["RoleSessionName"] == "aws-msk-iam-auth"
    assert request.form["ExternalId"] == "s3cret-id"
    assert "/eu-west-1/sts/" in request.headers["Authorization"]
    assert "s3cret-id" not in repr(login) + caplog.text


def test_the_session_name_of_the_options_is_used(
    no_aws_settings_of_this_host: pytest.MonkeyPatch,
) -> None:
    with running_token_server() as sts:
        sts.body = STS_ANSWER.encode()
        no_aws_settings_of_this_host.setenv("AWS_ENDPOINT_URL_STS", sts.url)
        iam_login(f'awsRoleArn="{ROLE}" awsRoleSessionName="mm2"').tokens.token(HOST)
    (request,) = sts.requests
    assert request.form["RoleSessionName"] == "mm2"
    assert "ExternalId" not in request.form


def test_a_refused_role_and_missing_credentials_say_what_to_check(
    no_aws_settings_of_this_host: pytest.MonkeyPatch,
) -> None:
    server: TokenServer
    with running_token_server() as server:
        server.status = 403
        server.body = (
            b"<ErrorResponse><Error><Code>AccessDenied</Code><Message>not allowed</Message>"
            b"</Error></ErrorResponse>"
        )
        no_aws_settings_of_this_host.setenv("AWS_ENDPOINT_URL_STS", server.url)
        with pytest.raises(TokenUnavailable, match=r"AccessDenied.*not allowed.*awsRoleArn"):
            iam_login(f'awsRoleArn="{ROLE}" awsRoleSessionName="denied"').tokens.token(HOST)
    no_aws_settings_of_this_host.delenv("AWS_ACCESS_KEY_ID")
    no_aws_settings_of_this_host.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(TokenUnavailable, match="there are no AWS credentials"):
        iam_login().tokens.token(HOST)


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install sparkmirror\[msk\]"):
        iam_login()


def test_an_external_id_without_a_role_is_a_fault() -> None:
    with pytest.raises(ConfigError, match="awsRoleExternalId, but no awsRoleArn") as caught:
        iam_login('awsRoleExternalId="s3cret-id"')
    assert "s3cret-id" not in str(caught.value)

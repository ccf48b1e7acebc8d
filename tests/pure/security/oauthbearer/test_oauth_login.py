"""Which token source the properties of a client mean, and what it sends."""

from __future__ import annotations

import base64
import json
import logging
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType

import pytest

from sparkmirror.errors import ConfigError
from sparkmirror.security.client_security import ClientSecurity
from sparkmirror.security.oauthbearer import oauth_login
from sparkmirror.security.oauthbearer.custom_login_callback_handler import (
    LoginToken,
    OAuthBearerLoginCallback,
)
from sparkmirror.security.oauthbearer.jwt import read_claims
from sparkmirror.security.sasl_credentials import BearerToken, TokenLogin, TokenUnavailable
from tests.support.security.token_server import TokenServer, running_token_server, signed_token

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
PACKAGE = "org.apache.kafka.common.security.oauthbearer"
HANDLER = "sasl.login.callback.handler.class"
URL = "sasl.oauthbearer.token.endpoint.url"


@pytest.fixture
def server() -> Iterator[TokenServer]:
    with running_token_server() as made:
        yield made


def properties(options: str = "", **more: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f"{MODULE} required {options};",
        **more,
    }


def environment(*urls: str, files: str = "", classes: str = "") -> dict[str, str]:
    return {
        "SPARKMIRROR_OAUTHBEARER_ALLOWED_URLS": ",".join(urls),
        "SPARKMIRROR_OAUTHBEARER_ALLOWED_FILES": files,
        "SPARKMIRROR_OAUTHBEARER_ALLOWED_CLASSES": classes,
    }


def login(given: Mapping[str, str], process: Mapping[str, str]) -> TokenLogin:
    made = ClientSecurity.from_properties(given, process).login
    assert isinstance(made, TokenLogin)
    return made


def token(given: Mapping[str, str], process: Mapping[str, str]) -> BearerToken:
    return login(given, process).tokens.token("b1")


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.mark.parametrize("handler", sorted(oauth_login.SECURED_HANDLERS))
def test_client_credentials_of_the_jaas_options_are_sent_as_java_sends_them(
    server: TokenServer, handler: str
) -> None:
    options = 'clientId="me" clientSecret="s3c:ret+" scope="a b" extension_tenant="t1"'
    given = properties(options, **{URL: server.url, HANDLER: handler})
    made = token(given, environment(server.url))
    assert made.extensions == {"tenant": "t1"}
    (request,) = server.requests
    assert request.path == "/token"
    assert request.form == {"grant_type": "client_credentials", "scope": "a b"}
    assert request.headers["Authorization"] == basic("me", "s3c:ret+")
    assert request.headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert request.headers["Accept"] == "application/json"
    security = ClientSecurity.from_properties(given, environment(server.url))
    assert "s3c:ret+" not in repr(security) + repr(login(given, environment(server.url)).tokens)


def test_the_keys_of_kafka_4_1_win_over_the_options(server: TokenServer) -> None:
    given = properties(
        'clientId="old" clientSecret="old" scope="old"',
        **{
            URL: server.url,
            "sasl.oauthbearer.client.credentials.client.id": "new id",
            "sasl.oauthbearer.client.credentials.client.secret": "s&",
            "sasl.oauthbearer.scope": "new",
            "sasl.oauthbearer.header.urlencode": "true",
        },
    )
    token(given, environment(server.url))
    (request,) = server.requests
    assert request.headers["Authorization"] == basic("new+id", "s%26")
    assert request.form["scope"] == "new"


def test_equal_settings_share_a_token_and_other_settings_do_not(server: TokenServer) -> None:
    given = properties('clientId="share" clientSecret="x"', **{URL: server.url})
    first, second = (login(dict(given), environment(server.url)) for _ in range(2))
    assert first.tokens is second.tokens
    assert first == second
    first.tokens.token("b1")
    second.tokens.token("b2")
    assert len(server.requests) == 1
    other = properties('clientId="share" clientSecret="y"', **{URL: server.url})
    assert login(other, environment(server.url)).tokens is not first.tokens


def test_the_jwt_bearer_retriever_exchanges_an_assertion(
    server: TokenServer, tmp_path: Path
) -> None:
    file = tmp_path / "assertion"
    file.write_text("a.b.c\n")
    given = properties(
        **{
            URL: server.url,
            "sasl.oauthbearer.jwt.retriever.class": f"{PACKAGE}.JwtBearerJwtRetriever",
            "sasl.oauthbearer.assertion.file": str(file),
            "sasl.oauthbearer.scope": "s",
        }
    )
    token(given, environment(server.url, files=str(file)))
    (request,) = server.requests
    assert request.form == {
        "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
        "assertion": "a.b.c",
        "scope": "s",
    }
    assert "Authorization" not in request.headers
    with pytest.raises(ConfigError, match=r"allowed\.files"):
        token(given, environment(server.url))


def test_client_credentials_with_an_assertion_need_no_secret(
    server: TokenServer, tmp_path: Path
) -> None:
    file = tmp_path / "assertion"
    file.write_text("a.b.c")
    given = properties(
        'clientId="me"', **{URL: server.url, "sasl.oauthbearer.assertion.file": str(file)}
    )
    token(given, environment(server.url, files=str(file)))
    (request,) = server.requests
    assert request.form == {
        "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        "client_assertion": "a.b.c",
        "grant_type": "client_credentials",
        "client_id": "me",
    }


def test_a_token_file_is_read_for_each_login(tmp_path: Path) -> None:
    file = tmp_path / "token"
    given = properties('extension_a="b"', **{URL: f"file://{file}"})
    source = login(given, environment(files=str(file))).tokens
    with pytest.raises(TokenUnavailable, match="cannot be read: No such file"):
        source.token("b1")
    for name in ("one", "two"):
        file.write_text(signed_token(name=name))
        made = source.token("b1")
        assert read_claims(made.value.value)["name"] == name
        assert made.extensions == {"a": "b"}
    file.write_text(signed_token(lifetime_s=-10))
    with pytest.raises(TokenUnavailable, match="expired"):
        source.token("b1")


def test_an_unsecured_token_has_the_claims_of_the_options_and_warns_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oauth_login, "_unsecured_warnings", set())
    options = (
        'unsecuredLoginStringClaim_sub="alice" unsecuredLoginNumberClaim_n="5" '
        'unsecuredLoginListClaim_scope="|a|b" unsecuredLoginLifetimeSeconds="60" '
        'unsecuredLoginExtension_x="y"'
    )
    with caplog.at_level(logging.WARNING):
        made = token(properties(options), {})
        token(properties(options), {})
    assert caplog.text.count("UNSECURED") == 1
    header, claims, signature = made.value.value.split(".")
    assert json.loads(base64.urlsafe_b64decode(header + "==")) == {"alg": "none"}
    found = dict(read_claims(made.value.value))
    assert found.pop("exp") - found.pop("iat") == 60
    assert found == {"sub": "alice", "n": 5.0, "scope": ["a", "b"]}
    assert signature == ""
    assert "=" not in claims
    assert made.extensions == {"x": "y"}
    assert login(properties(options), {}) == login(properties(options), {})


class EchoTokens(OAuthBearerLoginCallback):
    """The callback of a test: its option is the token."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        if "text" not in options:
            raise ValueError("text is missing")

    def retrieve(self) -> LoginToken:
        return LoginToken(value=self.options["text"], lifetime_s=60, extensions={"by": "callback"})


def test_a_python_class_supplies_tokens_if_the_operator_allows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = "operators_tokens:EchoTokens"
    module = ModuleType("operators_tokens")
    vars(module).update(EchoTokens=EchoTokens, signed_token=signed_token)
    monkeypatch.setitem(sys.modules, "operators_tokens", module)
    given = properties('text="opaque"', **{HANDLER: name})
    made = token(given, environment(classes=name))
    assert made.value.value == "opaque"
    assert made.extensions == {"by": "callback"}
    with pytest.raises(ConfigError, match=rf"allowed\.classes={name}"):
        login(given, {})
    with pytest.raises(ConfigError, match="refuses its options: text is missing"):
        login(properties(**{HANDLER: name}), environment(classes=name))
    for other, message in (
        ("operators_tokens:Missing", "there is no Python class"),
        ("no_such_module_here:X", "there is no Python class"),
        ("operators_tokens:signed_token", "does not extend"),
    ):
        with pytest.raises(ConfigError, match=message):
            login(properties(**{HANDLER: other}), environment(classes=other))


@pytest.mark.parametrize(
    ("options", "more", "message"),
    [
        ("", {}, "token.endpoint.url is missing"),
        ('clientId="a"', {URL: "https://idp/t"}, "client.secret is missing"),
        ('clientSecret="a"', {URL: "https://idp/t"}, "client.id is missing"),
        ("", {URL: "https://other/t"}, r"allowed\.urls=https://other/t"),
        ("", {HANDLER: "com.acme.Handler"}, "com.acme.Handler is not supported"),
        ("", {URL: "https://idp/t", "sasl.oauthbearer.jwt.retriever.class": "x.Y"},
         "x.Y is not supported"),
        ('clientId="a" clientSecret="b" extension_auth="x"', {URL: "https://idp/t"},
         "SASL extension is letters, but not auth"),
        ('unsecuredLoginStringClaim_other="a"', {}, "names no principal"),
        ('unsecuredLoginStringClaim_sub="a" unsecuredLoginNumberClaim_n="s3cret"', {},
         "is not a number"),
        ('unsecuredLoginStringClaim_sub="a" unsecuredLoginStringClaim_exp="1"', {},
         "may not set the claim exp"),
    ],
    ids=[
        "url", "secret", "id", "not allowed", "handler", "retriever", "extension", "principal",
        "number", "reserved",
    ],
)  # fmt: skip
def test_an_incomplete_login_is_named_by_its_key(
    options: str, more: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        login(properties(options, **more), environment("https://idp/t"))
    assert "s3cret" not in str(caught.value)


# -- Strimzi -------------------------------------------------------------------------------------


PASSWORD_GRANT = (
    'oauth.client.secret="s" oauth.password.grant.username="u" oauth.password.grant.password="p"'
)


def strimzi(options: str) -> dict[str, str]:
    return properties(options, **{HANDLER: oauth_login.STRIMZI_HANDLER})


@pytest.mark.parametrize(
    ("options", "form", "header"),
    [
        ('oauth.client.secret="s" oauth.scope="x" oauth.audience="kafka"',
         {"grant_type": "client_credentials", "scope": "x", "audience": "kafka"},
         basic("me", "s")),
        ('oauth.refresh.token="r"',
         {"client_id": "me", "grant_type": "refresh_token", "refresh_token": "r"}, None),
        (PASSWORD_GRANT,
         {"client_id": "me", "grant_type": "password", "username": "u", "password": "p"},
         basic("me", "s")),
    ],
    ids=["client credentials", "refresh token", "password"],
)  # fmt: skip
def test_the_options_of_strimzi_are_sent(
    server: TokenServer, options: str, form: dict[str, str], header: str | None
) -> None:
    given = strimzi(
        f'oauth.client.id="me" oauth.token.endpoint.uri="{server.url}" {options} '
        'oauth.sasl.extension.tenant="t1"'
    )
    made = token(given, environment(server.url))
    assert made.extensions == {"tenant": "t1"}
    (request,) = server.requests
    assert request.form == form
    assert request.headers.get("Authorization") == header


def test_a_ready_token_of_strimzi_is_used_until_it_expires(tmp_path: Path) -> None:
    text = signed_token()
    assert token(strimzi(f'oauth.access.token="{text}"'), {}).value.value == text
    with pytest.raises(TokenUnavailable, match=r"oauth\.access\.token: .* expired"):
        token(strimzi(f'oauth.access.token="{signed_token(-5)}"'), {})
    file = tmp_path / "token"
    file.write_text(text)
    given = strimzi(f'oauth.access.token.location="{file}"')
    assert token(given, environment(files=str(file))).value.value == text
    with pytest.raises(ConfigError, match=r"allowed\.files"):
        login(given, {})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", r"lacks oauth\.token\.endpoint\.uri"),
        ('oauth.token.endpoint.uri="https://idp/t"', r"lacks oauth\.client\.id"),
        ('oauth.token.endpoint.uri="https://idp/t" oauth.client.id="a"',
         r"lacks oauth\.client\.secret"),
        ('oauth.token.endpoint.uri="https://no/t"', r"allowed\.urls"),
        ('oauth.token.endpoint.uri="https://idp/t" oauth.connect.timeout.seconds="x"',
         "is not a number"),
    ],
    ids=["uri", "id", "secret", "not allowed", "timeout"],
)  # fmt: skip
def test_missing_options_of_strimzi_are_named(options: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        login(strimzi(options), environment("https://idp/t"))

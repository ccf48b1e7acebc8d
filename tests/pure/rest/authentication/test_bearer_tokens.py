"""Bearer tokens: which are accepted, and when their file is read again."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from sparkmirror.config.secrets.password import Password
from sparkmirror.errors import ConfigError
from sparkmirror.rest.authentication import bearer_tokens
from sparkmirror.rest.authentication.basic_auth import BasicAuthUsers
from sparkmirror.rest.authentication.bearer_tokens import BearerTokens
from sparkmirror.rest.server_options import RestOptions
from tests.support.rest.rest_client import running_rest_client
from tests.support.rest.scripted_herder import ScriptedHerder

TOKEN = "dGhpcyBpcyBhIHRva2Vu=="
OTHER = "another-token.of~24+chars/"
HASHED = "kept-as-a-hash-0123456789"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "tokens.properties"
    digest = hashlib.sha256(HASHED.encode()).hexdigest()
    file.write_text(f"# who: what\nci: {TOKEN}\nconsole={OTHER}\nops: sha256:{digest}\n")
    return file


@pytest.fixture
def read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for a change of the file with each request, not once a second."""
    monkeypatch.setattr(bearer_tokens, "CHECK_INTERVAL_S", 0.0)


@pytest.mark.parametrize(
    ("header", "name"),
    [
        (f"Bearer {TOKEN}", "ci"),
        (f"bEARER  {TOKEN} ", "ci"),
        (f"Bearer {OTHER}", "console"),
        (f"Bearer {HASHED}", "ops"),
        (f"Basic {TOKEN}", None),
        (f"Bearer {TOKEN[:-1]}", None),
        (f"Bearer {TOKEN},{TOKEN}", None),
        ("Bearer " + hashlib.sha256(HASHED.encode()).hexdigest(), None),
        ("Bearer sha256:" + hashlib.sha256(HASHED.encode()).hexdigest(), None),
        ("Bearer \xff", None),
        ("Bearer ", None),
        ("Bearer", None),
        (TOKEN, None),
        ("", None),
        (None, None),
    ],
)
def test_tokens_are_checked(header: str | None, name: str | None, file: Path) -> None:
    assert BearerTokens(file).authenticate(header) == name


def test_neither_tokens_nor_names_are_shown(file: Path) -> None:
    assert repr(BearerTokens(file)) == "BearerTokens(3)"


@pytest.mark.usefixtures("read_at_once")
def test_a_changed_file_is_read_again(file: Path) -> None:
    tokens = BearerTokens(file)
    replacement = file.with_suffix(".new")
    replacement.write_text("ci: a-new-token-of-the-ci\n")
    replacement.replace(file)
    assert tokens.authenticate(f"Bearer {TOKEN}") is None, "a revoked token"
    assert tokens.authenticate("Bearer a-new-token-of-the-ci") == "ci"


@pytest.mark.usefixtures("read_at_once")
@pytest.mark.parametrize("content", [None, "", "ci: short\n"])
def test_no_token_is_accepted_while_the_file_cannot_be_read(
    content: str | None, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tokens, correct = BearerTokens(file), file.read_text()
    if content is None:
        file.unlink()
    else:
        file.write_text(content)
    for _ in range(2):
        assert tokens.authenticate(f"Bearer {TOKEN}") is None
    assert [record.levelname for record in caplog.records] == ["ERROR"], "one line, not two"
    assert str(file) in caplog.text
    file.write_text(correct)
    assert tokens.authenticate(f"Bearer {TOKEN}") == "ci"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "is empty"),
        ("ci: short", "the token of ci"),
        ("ci: with blanks in the middle", "the token of ci"),
        ("ci: sha256:0123456789abcdef", "the token of ci"),
    ],
)
def test_a_file_without_usable_tokens_is_refused_without_showing_one(
    content: str, reason: str, file: Path
) -> None:
    file.write_text(content)
    with pytest.raises(ConfigError, match=reason) as raised:
        BearerTokens(file)
    assert "short" not in str(raised.value)
    assert "0123456789" not in str(raised.value)


def test_a_missing_file_of_tokens_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such file"):
        BearerTokens(tmp_path / "tokens")


def test_a_request_needs_a_token_and_401_asks_for_one(file: Path) -> None:
    herder = ScriptedHerder()
    with running_rest_client(
        herder, RestOptions(tokens=BearerTokens(file), access_log=False)
    ) as client:
        herder.set_response(200, [])
        for path in ("/connectors", "/", "/health", "/nope", "/admin/loggers", "/openapi.json"):
            answer = client.request("GET", path)
            assert (answer.status, answer.content) == (401, b"User cannot access the resource.")
            assert answer.headers["www-authenticate"] == "Bearer"
        assert herder.calls == []
        authorized = {"Authorization": f"Bearer {OTHER}"}
        assert client.request("GET", "/connectors", headers=authorized).json == []


def test_a_password_or_a_token_is_enough_if_both_are_configured(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    herder = ScriptedHerder()
    users = BasicAuthUsers({"alice": Password("s3cret")})
    with running_rest_client(herder, RestOptions(users=users, tokens=BearerTokens(file))) as client:
        herder.set_response(200, [])
        for credentials in ("Basic YWxpY2U6czNjcmV0", f"Bearer {TOKEN}"):
            headers = {"Authorization": credentials}
            assert client.request("GET", "/connectors", headers=headers).status == 200
        wrong = {"Authorization": "Basic YWxpY2U6d3Jvbmc="}
        assert client.request("GET", "/connectors", headers=wrong).status == 401
    users_logged = [
        record.getMessage().split()[2]
        for record in caplog.records
        if record.name.endswith("access_log")
    ]
    assert users_logged == ["alice", "ci", "-"]
    assert TOKEN not in caplog.text

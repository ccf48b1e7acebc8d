"""Names and passwords: who is let in, and which files are refused."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from sparkmirror.config.password import Password
from sparkmirror.errors import ConfigError
from sparkmirror.rest.basic_auth import Users, users_of_jaas, users_of_properties
from sparkmirror.rest.options import RestOptions
from tests.support.rest_client import client_of
from tests.support.scripted_herding import ScriptedHerding

MODULE = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule"
USERS = Users({"alice": Password("s3cret"), "bob": Password("")})


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("header", "name"),
    [
        (basic("alice:s3cret"), "alice"),
        (basic("alice:s3cret").replace("Basic", "bASIC"), "alice"),
        (basic("bob:"), "bob"),
        (basic("alice:wrong"), None),
        (basic("alice:"), None),
        (basic("carol:"), None),
        (basic(":"), None),
        (basic("alice"), None),
        ("Basic alice:s3cret", None),
        ("Basic " + base64.b64encode(b"\xff:\xff").decode(), None),
        ("Bearer x", None),
        ("", None),
        (None, None),
    ],
)
def test_who_is_admitted(header: str | None, name: str | None) -> None:
    assert USERS.admitted(header) == name


def test_the_users_are_not_shown() -> None:
    assert "alice" not in repr(USERS)
    assert "s3cret" not in repr(USERS)


def test_users_are_read_from_where_java_reads_them(tmp_path: Path) -> None:
    users = tmp_path / "users.properties"
    users.write_text("alice: s3cret\ndave=x=y\n")
    jaas = tmp_path / "jaas.conf"
    section = f'KafkaConnect {{\n  {MODULE} required\n  file="{users}";\n}};\n'
    jaas.write_text("KafkaClient { a.B required; };\n" + section)
    read = users_of_jaas(jaas)
    assert read.admitted(basic("alice:s3cret")) == "alice"
    assert read.admitted(basic("dave:x=y")) == "dave"


@pytest.mark.parametrize(
    "text", ["", "KafkaClient { a.B required; };", "KafkaConnect { a.B required; };"]
)
def test_a_jaas_file_that_names_no_users_is_refused(text: str, tmp_path: Path) -> None:
    jaas = tmp_path / "jaas.conf"
    jaas.write_text(text)
    with pytest.raises(ConfigError, match=r"rest\.extension\.classes"):
        users_of_jaas(jaas)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"jaas\.conf"):
        users_of_jaas(tmp_path / "jaas.conf")
    with pytest.raises(ConfigError, match=r"users\.properties"):
        users_of_properties(tmp_path / "users.properties")


def test_an_empty_file_of_users_lets_nobody_in(tmp_path: Path) -> None:
    users = tmp_path / "users.properties"
    users.write_text("# nobody\n")
    with pytest.raises(ConfigError, match="let everybody in"):
        users_of_properties(users)


def test_nobody_gets_an_answer_without_logging_in() -> None:
    herding = ScriptedHerding()
    with client_of(herding, RestOptions(users=USERS, access_log=False)) as client:
        herding.will_say(200, [])
        for path in ("/connectors", "/", "/health", "/nope", "/admin/loggers"):
            answer = client.ask("GET", path)
            assert (answer.status, answer.content) == (401, b"User cannot access the resource.")
            assert answer.headers["content-type"] == "text/plain"
            assert "www-authenticate" not in answer.headers
        assert herding.asked == []
        known = {"Authorization": basic("alice:s3cret")}
        assert client.ask("GET", "/connectors", headers=known).json == []


@pytest.mark.parametrize(("method", "path"), [("POST", "tasks"), ("PUT", "fence")])
def test_workers_sign_instead_of_logging_in(method: str, path: str) -> None:
    with client_of(ScriptedHerding(), RestOptions(users=USERS, access_log=False)) as client:
        answer = client.ask(method, f"/connectors/x/{path}")
        assert (answer.status, answer.message) == (
            400,
            "Internal request missing required signature",
        )
        signed = {
            "X-Connect-Authorization": "BITrDPAvdOMx22LCcm3SRe927tekj1J0DFAjzCI4mNs=",
            "X-Connect-Request-Signature-Algorithm": "HmacSHA256",
        }
        answer = client.ask(method, f"/connectors/x/{path}", headers=signed)
        assert (answer.status, answer.message) == (
            403,
            "Internal request contained invalid signature.",
        )
        signed["X-Connect-Authorization"] = "%%%"
        assert client.ask(method, f"/connectors/x/{path}", headers=signed).status == 400

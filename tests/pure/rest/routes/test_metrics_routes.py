"""/metrics on the REST listeners and on listeners of its own."""

from __future__ import annotations

import logging
import socket

import pytest

from sparkmirror.config.secrets.password import Password
from sparkmirror.config.tables.additions import METRICS_LISTENER
from sparkmirror.errors import ConfigError
from sparkmirror.metrics.connect_metrics import TASK_COUNT
from sparkmirror.metrics.definition import Figure
from sparkmirror.rest.authentication.basic_auth import BasicAuthUsers
from sparkmirror.rest.http.listener import RestListener
from sparkmirror.rest.server_options import RestOptions
from sparkmirror.rest.settings import rest_settings
from tests.support.rest.rest_client import request_once, running_rest_server
from tests.support.rest.scripted_herder import ScriptedHerder

LISTENER = RestListener.parse("http://127.0.0.1:0", METRICS_LISTENER)
LINE = "kafka_connect_worker_task_count 2.0"
USERS = BasicAuthUsers({"alice": Password("s3cret")})
ALICE = {"Authorization": "Basic YWxpY2U6czNjcmV0"}


def figures() -> list[Figure]:
    return [Figure(definition=TASK_COUNT, value=2)]


OPTIONS = RestOptions(get_figures=figures, metrics_listeners=(LISTENER,), access_log=False)


@pytest.mark.parametrize("listener", [0, 1])
@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("", "text/plain; version=0.0.4; charset=utf-8"),
        ("*/*", "text/plain; version=0.0.4; charset=utf-8"),
        ("text/plain", "text/plain; version=0.0.4; charset=utf-8"),
        ("application/openmetrics-text; version=1.0.0, */*;q=0.1", "application/openmetrics-text"),
        ('application/openmetrics-text; version="1.0.0"', "application/openmetrics-text"),
        ("application/openmetrics-text;q=0.5, text/plain;q=0.5", "application/openmetrics-text"),
        ("text/plain;q=1, application/openmetrics-text;q=0.1", "text/plain; version=0.0.4"),
        ("application/openmetrics-text;q=0", "text/plain; version=0.0.4"),
        ("application/openmetrics-text;q=much", "text/plain; version=0.0.4"),
        ("text/plain;version=latest", "text/plain; version=0.0.4"),
    ],
)
def test_the_format_is_the_one_that_the_client_asks_for(
    listener: int, accept: str, media_type: str
) -> None:
    with running_rest_server(ScriptedHerder(), OPTIONS) as server:
        headers = {"Accept": accept} if accept else {}
        answer = request_once(server.addresses[listener], "GET", "/metrics", headers=headers)
    assert answer.status == 200
    assert answer.headers["content-type"].startswith(media_type)
    assert LINE in answer.content.decode()


def test_a_listener_for_metrics_serves_nothing_else() -> None:
    herder = ScriptedHerder()
    herder.set_response(200, [])
    with running_rest_server(herder, OPTIONS) as server:
        api, own = server.addresses
        assert request_once(own, "GET", "/").status == 200
        assert request_once(own, "GET", "/connectors").status == 404
        assert request_once(own, "DELETE", "/metrics").status == 405
        assert request_once(api, "GET", "/connectors").status == 200


def test_the_log_says_where_the_metrics_are(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with running_rest_server(ScriptedHerder(), OPTIONS) as server:
        assert f"Metrics are served at {server.addresses[1]}/metrics" in caplog.text


def test_both_listeners_ask_for_the_credentials_of_the_api() -> None:
    options = RestOptions(
        get_figures=figures, metrics_listeners=(LISTENER,), users=USERS, access_log=False
    )
    with running_rest_server(ScriptedHerder(), options) as server:
        for address in server.addresses:
            assert request_once(address, "GET", "/metrics").status == 401
            assert request_once(address, "GET", "/metrics", headers=ALICE).status == 200


def test_without_figures_there_is_no_route() -> None:
    with running_rest_server(ScriptedHerder()) as server:
        assert request_once(server.address, "GET", "/metrics").status == 404


def test_a_port_that_is_taken_names_the_key_of_the_metrics() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        listener = RestListener.parse(f"http://127.0.0.1:{port}", METRICS_LISTENER)
        options = RestOptions(get_figures=figures, metrics_listeners=(listener,))
        with (
            pytest.raises(ConfigError) as raised,
            running_rest_server(ScriptedHerder(), options),
        ):
            pass
    assert [fault.key for fault in raised.value.faults] == [METRICS_LISTENER]


def test_the_listeners_of_the_config() -> None:
    config = {"listeners": ("http://127.0.0.1:8083",)}
    given = {METRICS_LISTENER: " http://0.0.0.0:9404 , http://[::1]:9405"}
    found = rest_settings(config, given, {}).options.metrics_listeners
    assert [str(one) for one in found] == ["http://0.0.0.0:9404", "http://[::1]:9405"]
    assert rest_settings(config, {}, {}).options.metrics_listeners == ()

"""Start and stop: the server starts before the herder and answers every request before it ends."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http.client import HTTPException

import pytest
import uvicorn

from sparkmirror.connect.herder import herder_parts
from sparkmirror.connect.herder.distributed_herder import DistributedHerder
from sparkmirror.connect.herder.herder import ServerInfo, WorkerStatus
from sparkmirror.connect.herder.herder_dependencies import HerderDependencies
from sparkmirror.connect.herder.worker_settings import WorkerSettings
from sparkmirror.model import SourceAndTarget
from sparkmirror.rest.http.listener import RestListener
from sparkmirror.rest.routes.worker_routes import health_reply
from sparkmirror.rest.server import RestServer
from sparkmirror.rest.server_options import RestOptions
from sparkmirror.rest.worker_group_access import NO_GROUP
from sparkmirror.store.backing_stores import BackingStores
from tests.support.connect.fake_connectors import ConnectorProbe, fake_connector_registry
from tests.support.connect.in_memory_herder import WORKER_SETTINGS
from tests.support.connect.in_memory_stores import (
    MemoryLog,
    memory_config_store,
    memory_offset_store,
    memory_status_store,
)
from tests.support.reserved_port import reserved_port
from tests.support.rest.blocking_herder import BlockingHerder
from tests.support.rest.java_recordings import recorded_exchanges
from tests.support.rest.rest_client import (
    JSON_HEADERS,
    RestClient,
    request_once,
    running_rest_client,
    running_rest_server,
)
from tests.support.rest.scripted_herder import ScriptedHerder
from tests.support.waiting import wait_until

LOOPBACK = [RestListener.parse("http://127.0.0.1:0")]
FLOWS = (SourceAndTarget("A", "B"), SourceAndTarget("B", "A"))
ADDITIONAL_PATHS = ("/", "/health", "/connectors", "/connector-plugins", "/admin/loggers")
"""Paths that MirrorMaker 2 does not serve in dedicated mode."""
HTML_ANSWERS = [
    each
    for each in recorded_exchanges("00-startup")
    if "text/html" in each.response_headers.get("content-type", "")
]


def in_memory_herder(settings: WorkerSettings) -> DistributedHerder:
    stores = BackingStores(
        configs=memory_config_store(MemoryLog()),
        statuses=memory_status_store(MemoryLog()),
        offsets=memory_offset_store(MemoryLog()),
    )
    server_info = ServerInfo(version="4.3.0", commit="x", kafka_cluster_id=None)
    dependencies = HerderDependencies(
        registry=fake_connector_registry(ConnectorProbe()),
        get_server_info=lambda: server_info,
        providers={},
        fencer=lambda _: None,
    )
    return DistributedHerder(settings, stores, dependencies)


@pytest.mark.parametrize(
    ("status", "code"), [("healthy", 200), ("starting", 503), ("unhealthy", 500)]
)
def test_health_is_in_the_http_status_too(status: str, code: int) -> None:
    reply = health_reply(WorkerStatus(status=status, message="x"))
    assert (reply.status, reply.content) == (
        code,
        f'{{"status":"{status}","message":"x"}}'.encode(),
    )


def test_a_request_before_the_worker_is_ready_waits_where_java_answers_in_html() -> None:
    paths = [each.path for each in HTML_ANSWERS if each.path == "/connectors"]
    herder = BlockingHerder()
    with running_rest_server(herder) as server, ThreadPoolExecutor() as clients:
        answers = [clients.submit(request_once, server.address, "GET", path) for path in paths]
        assert herder.pending_calls.acquire(timeout=50)
        assert not any(answer.done() for answer in answers)
        herder.release()
        assert [answer.result().json for answer in answers] == [["at last"]]


def test_a_herder_that_has_not_started_is_reported_as_starting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(herder_parts, "START_PATIENCE_S", 0.1)
    settings = replace(WORKER_SETTINGS, request_timeout_s=0.1, health_timeout_s=0.1)
    herder = in_memory_herder(settings)
    with running_rest_client(herder) as client:
        health = client.request("GET", "/health")
        assert (health.status, health.json["status"]) == (503, "starting")
        assert health.json["message"].startswith("Worker is still starting up.")
        late = client.request("GET", "/connectors")
        assert (late.status, late.message) == (503, "Worker is still starting up.")
        assert client.request("GET", "/").json["version"] == "4.3.0"
        assert client.request("GET", "/connector-plugins").status == 200
        herder.start()
        assert herder.await_started(50)
        wait_until(lambda: client.request("GET", "/connectors").json == [], "an answer in time")
        wait_until(lambda: client.request("GET", "/health").json["status"] == "healthy", "health")
        herder.shut_down()


def test_requests_in_progress_are_answered_before_the_server_stops() -> None:
    herder = BlockingHerder()
    server = RestServer(herder, LOOPBACK, RestOptions(access_log=False))
    server.start()
    with ThreadPoolExecutor() as clients:
        answer = clients.submit(request_once, server.address, "GET", "/connectors")
        assert herder.pending_calls.acquire(timeout=50)
        threading.Timer(0.1, herder.release).start()
        server.stop(50.0)
        assert answer.result().json == ["at last"]


def test_a_request_that_outlasts_the_stop_timeout_gets_503() -> None:
    herder = BlockingHerder()
    server = RestServer(herder, LOOPBACK, RestOptions(access_log=False))
    server.start()
    started = time.monotonic()
    with ThreadPoolExecutor() as clients:
        answer = clients.submit(request_once, server.address, "GET", "/connectors")
        assert herder.pending_calls.acquire(timeout=50)
        server.stop(0.1)
        assert time.monotonic() - started < 25, "it waited for the herder"
        assert (answer.result().status, answer.result().message) == (
            503,
            "The worker is shutting down",
        )
    herder.release()


def test_after_stop_connections_are_refused() -> None:
    server = RestServer(ScriptedHerder(), LOOPBACK, RestOptions(access_log=False))
    server.start()
    idle = RestClient(server.address)
    assert idle.request("GET", "/nope").status == 404
    server.stop(1.0)
    with pytest.raises(ConnectionError):
        request_once(server.address, "GET", "/")
    idle.close()


def test_stopping_a_server_that_never_started_is_a_no_op() -> None:
    RestServer(ScriptedHerder(), LOOPBACK, RestOptions()).stop(1.0)


@pytest.fixture
def free_listeners() -> Iterator[list[RestListener]]:
    """Two listeners whose ports no other process takes."""
    with reserved_port() as one, reserved_port() as another:
        yield [RestListener.parse(f"http://127.0.0.1:{port}") for port in (one, another)]


def test_a_server_that_fails_to_start_raises_and_closes_every_listener(
    free_listeners: list[RestListener],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise OSError("no more files")

    monkeypatch.setattr("uvicorn.Server.startup", fail)
    server = RestServer(ScriptedHerder(), free_listeners, RestOptions())
    with pytest.raises(ExceptionGroup) as caught:
        server.start()
    assert "no more files" in str(caught.value.exceptions[0])
    for listener in free_listeners:
        listener.bind().close()
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    server.stop(1.0)


def test_a_thread_that_cannot_start_closes_every_listener(
    free_listeners: list[RestListener], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    server = RestServer(ScriptedHerder(), free_listeners, RestOptions())
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't start"):
            server.start()
    for listener in free_listeners:
        listener.bind().close()
    server.stop(1.0)


def test_a_server_that_dies_logs_an_error_and_closes_every_listener_and_connection(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    dying_ports: set[int] = set()
    on_tick = uvicorn.Server.on_tick

    async def fail_on_dying_port(self: uvicorn.Server, counter: int) -> bool:
        sockets = [each for server in self.servers for each in server.sockets]
        if dying_ports & {each.getsockname()[1] for each in sockets}:
            raise OSError("broken")
        return await on_tick(self, counter)

    monkeypatch.setattr("uvicorn.Server.on_tick", fail_on_dying_port)
    server = RestServer(ScriptedHerder(), LOOPBACK * 2, RestOptions(access_log=False))
    server.start()
    idle = RestClient(server.addresses[1])
    assert idle.request("GET", "/nope").status == 404
    dying_ports.add(RestListener.parse(server.addresses[0]).port)
    wait_until(lambda: bool(caplog.records), "the log line")
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert ", ".join(server.addresses) in record.getMessage()
    for address in server.addresses:
        with pytest.raises(ConnectionError):
            request_once(address, "GET", "/")
    with pytest.raises((ConnectionError, HTTPException)):
        idle.request("GET", "/nope")
    idle.close()
    server.stop(1.0)


def test_a_stopped_server_logs_no_error(caplog: pytest.LogCaptureFixture) -> None:
    with running_rest_server(ScriptedHerder()):
        pass
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_each_request_is_logged_in_the_format_of_connect(caplog: pytest.LogCaptureFixture) -> None:
    herder = ScriptedHerder()
    herder.set_response(200, [])
    with caplog.at_level(logging.INFO), running_rest_server(herder, RestOptions()) as server:
        client = RestClient(server.address)
        client.request("GET", "/connectors?expand=info", headers={"User-Agent": "curl/8"})
        client.close()
    (line,) = [each for each in caplog.records if each.name == "sparkmirror.rest.http.access_log"]
    text = line.getMessage()
    assert text.startswith("127.0.0.1 - - [")
    assert '"GET /connectors?expand=info HTTP/1.1" 200 2 "-" "curl/8" ' in text


def test_no_config_value_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    herder = ScriptedHerder()
    config = {"sasl.jaas.config": 'x required password="s3cret";'}
    herder.set_response(400, {"error_code": 400, "message": "Connector config {p=s3cret} is bad"})
    with caplog.at_level(logging.DEBUG), running_rest_client(herder, RestOptions()) as client:
        answer = client.send_json("PUT", "/connectors/x/config", config)
        assert answer.status == 400
        client.request("PUT", "/connectors/x/config", '{"a": "s3cret', JSON_HEADERS)
    assert "s3cret" not in caplog.text


def test_stop_is_logged_without_a_stack_trace(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO), running_rest_server(ScriptedHerder()):
        pass
    assert "REST server stopped" in caplog.text
    assert "Traceback" not in caplog.text


def test_in_dedicated_mode_internal_requests_name_their_flow() -> None:
    with running_rest_client(
        ScriptedHerder(), RestOptions(groups=dict.fromkeys(FLOWS, NO_GROUP), access_log=False)
    ) as client:
        for exchange in recorded_exchanges("06-dedicated-internal-rest"):
            if (
                exchange.path in ADDITIONAL_PATHS
                or "X-Connect-Authorization" in exchange.request_headers
            ):
                continue
            answer = client.request(
                exchange.method, exchange.path, exchange.request, exchange.request_headers
            )
            assert (answer.status, answer.content.decode()) == (exchange.status, exchange.raw_body)
            assert answer.headers.get("content-type") == exchange.response_headers.get(
                "content-type"
            )

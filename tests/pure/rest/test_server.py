"""Starting and stopping: the server is there before the worker, and leaves nobody unanswered."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from sparkmirror.connect.herder import Herder
from sparkmirror.connect.herding import Health, WorkerInfo
from sparkmirror.connect.settings import WorkerSettings
from sparkmirror.connect.worker_life import Surroundings
from sparkmirror.model import SourceAndTarget
from sparkmirror.rest.listener import Listener
from sparkmirror.rest.options import RestOptions
from sparkmirror.rest.server import RestServer
from sparkmirror.rest.worker import health_reply
from sparkmirror.store.memory import MemoryLog, memory_configs, memory_offsets, memory_statuses
from sparkmirror.store.stores import Stores
from tests.support.busy_herding import BusyHerding
from tests.support.herders import SETTINGS
from tests.support.rest_client import JSON, Client, ask_once, client_of, served
from tests.support.rest_recordings import exchanges
from tests.support.scripted_herding import ScriptedHerding
from tests.support.small_connectors import Watch, small_kinds
from tests.support.waiting import wait_until

LOOPBACK = [Listener.parse("http://127.0.0.1:0")]
FLOWS = (SourceAndTarget("A", "B"), SourceAndTarget("B", "A"))
PUBLIC_HERE = ("/", "/health", "/connectors", "/connector-plugins", "/admin/loggers")
"""What MirrorMaker 2 does not serve in dedicated mode, and we do."""
HTML = [
    each for each in exchanges("00-startup") if "text/html" in each.headers.get("content-type", "")
]


def herder_in_memory(settings: WorkerSettings) -> Herder:
    stores = Stores(
        configs=memory_configs(MemoryLog()),
        statuses=memory_statuses(MemoryLog()),
        offsets=memory_offsets(MemoryLog()),
    )
    about = WorkerInfo(version="4.3.0", commit="x", kafka_cluster_id=None)
    surroundings = Surroundings(
        kinds=small_kinds(Watch()), about=lambda: about, providers={}, fence=lambda _: None
    )
    return Herder(settings, stores, surroundings)


@pytest.mark.parametrize(
    ("status", "code"), [("healthy", 200), ("starting", 503), ("unhealthy", 500)]
)
def test_health_is_told_in_the_status_too(status: str, code: int) -> None:
    reply = health_reply(Health(status=status, message="x"))
    assert (reply.status, reply.content) == (
        code,
        f'{{"status":"{status}","message":"x"}}'.encode(),
    )


def test_while_java_still_answers_in_html_we_already_wait_for_the_worker() -> None:
    paths = [each.path for each in HTML if each.path == "/connectors"]
    worker = BusyHerding()
    with served(worker) as server, ThreadPoolExecutor() as callers:
        answers = [callers.submit(ask_once, server.address, "GET", path) for path in paths]
        assert worker.waiting.acquire(timeout=50)
        assert not any(answer.done() for answer in answers)
        worker.release()
        assert [answer.result().json for answer in answers] == [["at last"]]


def test_a_herder_that_has_not_started_says_so() -> None:
    settings = replace(SETTINGS, request_timeout_s=0.1, health_timeout_s=0.1)
    herder = herder_in_memory(settings)
    with client_of(herder) as client:
        health = client.ask("GET", "/health")
        assert (health.status, health.json["status"]) == (503, "starting")
        assert health.json["message"].startswith("Worker is still starting up.")
        late = client.ask("GET", "/connectors")
        assert (late.status, late.message) == (500, "Request timed out.")
        assert client.ask("GET", "/").json["version"] == "4.3.0"
        assert client.ask("GET", "/connector-plugins").status == 200
        herder.start()
        assert herder.wait_started(50)
        assert client.ask("GET", "/connectors").json == []
        wait_until(lambda: client.ask("GET", "/health").json["status"] == "healthy", "health")
        herder.shut_down()


def test_requests_under_way_are_answered_before_the_server_ends() -> None:
    worker = BusyHerding()
    server = RestServer(worker, LOOPBACK, RestOptions(access_log=False))
    server.start()
    with ThreadPoolExecutor() as callers:
        answer = callers.submit(ask_once, server.address, "GET", "/connectors")
        assert worker.waiting.acquire(timeout=50)
        threading.Timer(0.1, worker.release).start()
        server.stop(50.0)
        assert answer.result().json == ["at last"]


def test_who_waits_too_long_is_told_that_the_worker_ends() -> None:
    worker = BusyHerding()
    server = RestServer(worker, LOOPBACK, RestOptions(access_log=False))
    server.start()
    began = time.monotonic()
    with ThreadPoolExecutor() as callers:
        answer = callers.submit(ask_once, server.address, "GET", "/connectors")
        assert worker.waiting.acquire(timeout=50)
        server.stop(0.1)
        assert time.monotonic() - began < 25, "it waited for the worker"
        assert (answer.result().status, answer.result().message) == (
            503,
            "The worker is shutting down",
        )
    worker.release()


def test_after_the_end_nobody_listens() -> None:
    server = RestServer(ScriptedHerding(), LOOPBACK, RestOptions(access_log=False))
    server.start()
    idle = Client(server.address)
    assert idle.ask("GET", "/nope").status == 404
    server.stop(1.0)
    with pytest.raises(ConnectionError):
        ask_once(server.address, "GET", "/")
    idle.close()


def test_stopping_a_server_that_never_started_is_nothing() -> None:
    RestServer(ScriptedHerding(), LOOPBACK, RestOptions()).stop(1.0)


def test_each_request_leaves_a_line_in_connects_form(caplog: pytest.LogCaptureFixture) -> None:
    herding = ScriptedHerding()
    herding.will_say(200, [])
    with caplog.at_level(logging.INFO), served(herding, RestOptions()) as server:
        client = Client(server.address)
        client.ask("GET", "/connectors?expand=info", headers={"User-Agent": "curl/8"})
        client.close()
    (line,) = [each for each in caplog.records if each.name == "sparkmirror.rest.access_log"]
    text = line.getMessage()
    assert text.startswith("127.0.0.1 - - [")
    assert '"GET /connectors?expand=info HTTP/1.1" 200 2 "-" "curl/8" ' in text


def test_nothing_of_a_config_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    herding = ScriptedHerding()
    config = {"sasl.jaas.config": 'x required password="s3cret";'}
    herding.will_say(400, {"error_code": 400, "message": "Connector config {p=s3cret} is bad"})
    with caplog.at_level(logging.DEBUG), client_of(herding, RestOptions()) as client:
        answer = client.send("PUT", "/connectors/x/config", config)
        assert answer.status == 400
        client.ask("PUT", "/connectors/x/config", '{"a": "s3cret', JSON)
    assert "s3cret" not in caplog.text


def test_the_end_is_logged_without_a_trace(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO), served(ScriptedHerding()):
        pass
    assert "REST server stopped" in caplog.text
    assert "Traceback" not in caplog.text


def test_in_dedicated_mode_workers_knock_at_their_flow() -> None:
    with client_of(ScriptedHerding(), RestOptions(flows=FLOWS, access_log=False)) as client:
        for exchange in exchanges("06-dedicated-internal-rest"):
            if exchange.path in PUBLIC_HERE or "X-Connect-Authorization" in exchange.sent_headers:
                continue
            answer = client.ask(
                exchange.method, exchange.path, exchange.request, exchange.sent_headers
            )
            assert (answer.status, answer.content.decode()) == (exchange.status, exchange.text)
            assert answer.headers.get("content-type") == exchange.headers.get("content-type")

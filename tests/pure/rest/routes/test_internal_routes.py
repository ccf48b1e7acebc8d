"""Signed requests between workers get the answers of the recorded Java workers."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Iterator

import pytest

from sparkmirror.errors import ConnectRestError, Forbidden
from sparkmirror.mirror.connect_topics.connect_configs import SessionKey
from sparkmirror.model import SourceAndTarget
from sparkmirror.rest.authentication.basic_auth import BasicAuthUsers
from sparkmirror.rest.client.inter_worker_requests import InterWorkerRequests
from sparkmirror.rest.client.rest_client import RestClient as WorkerRestClient
from sparkmirror.rest.server_options import RestOptions
from sparkmirror.rest.worker_group_access import WorkerGroupAccess
from tests.support.rest.java_recordings import RecordedExchange, recorded_exchanges
from tests.support.rest.rest_client import RestClient, running_rest_server
from tests.support.rest.scripted_herder import ScriptedHerder
from tests.support.rest.worker_group import ScriptedInternalHerder, session_keys

SECRET = b"0123456789abcdef0123456789abcdef"
KEY = SessionKey(key=base64.b64encode(SECRET).decode(), algorithm="HmacSHA256", created_ms=0)
FLOW = SourceAndTarget("A", "B")
SIGNATURE = "X-Connect-Authorization"
KEEPS_SIGNATURE = ("internal-tasks-bad-signature", "internal-tasks-not-base64")


def internal_exchanges(file: str) -> list[RecordedExchange]:
    return [
        exchange
        for exchange in recorded_exchanges(file)
        if exchange.path.endswith(("/tasks", "/fence")) and exchange.method in ("POST", "PUT")
    ]


def with_own_signature(exchange: RecordedExchange) -> dict[str, str]:
    """The recorded headers, signed with KEY where Java's signature was valid."""
    headers = dict(exchange.request_headers)
    if SIGNATURE in headers and exchange.name not in KEEPS_SIGNATURE:
        mac = hmac.new(SECRET, (exchange.request or "").encode(), "sha256")
        headers[SIGNATURE] = base64.b64encode(mac.digest()).decode()
    return headers


def options_of(
    herder: ScriptedInternalHerder,
    flow: SourceAndTarget | None = None,
    users: BasicAuthUsers | None = None,
) -> RestOptions:
    requests = InterWorkerRequests(WorkerRestClient(), herder.keys, flow)
    return RestOptions(
        groups={flow: WorkerGroupAccess(herder, requests)}, users=users, access_log=False
    )


@pytest.fixture(scope="module")
def worker() -> ScriptedInternalHerder:
    return ScriptedInternalHerder(session_keys(KEY), frozenset({"int"}))


@pytest.fixture(scope="module")
def worker_address(worker: ScriptedInternalHerder) -> Iterator[str]:
    with running_rest_server(ScriptedHerder(), options_of(worker)) as server:
        yield server.address


@pytest.mark.parametrize(
    "exchange",
    [*internal_exchanges("01-empty-worker"), *internal_exchanges("04-supplement")],
    ids=lambda each: f"{each.seq}-{each.name}",
)
def test_a_worker_answers_as_recorded(exchange: RecordedExchange, worker_address: str) -> None:
    client = RestClient(worker_address)
    answer = client.request(
        exchange.method, exchange.path, exchange.request, with_own_signature(exchange)
    )
    client.close()
    assert answer.status == exchange.status
    if "REDACTED" not in (exchange.raw_body or ""):  # the text is Jackson's
        assert answer.content.decode() == exchange.raw_body


@pytest.mark.parametrize(
    "exchange",
    internal_exchanges("06-dedicated-internal-rest"),
    ids=lambda each: f"{each.seq}-{each.name}",
)
def test_a_dedicated_node_answers_as_recorded(exchange: RecordedExchange) -> None:
    herder = ScriptedInternalHerder(session_keys(KEY), frozenset({"MirrorSourceConnector"}))
    options = options_of(herder, FLOW)
    reverse = SourceAndTarget("B", "A")
    options = RestOptions(
        groups={**options.groups, reverse: options.groups[FLOW]}, access_log=False
    )
    with running_rest_server(ScriptedHerder(), options) as server:
        client = RestClient(server.address)
        answer = client.request(
            exchange.method, exchange.path, exchange.request, with_own_signature(exchange)
        )
        client.close()
    assert (answer.status, answer.content.decode()) == (exchange.status, exchange.raw_body)


@pytest.mark.parametrize("flow", [None, FLOW, SourceAndTarget("a b", "c/d")])
def test_a_worker_gives_task_configs_to_the_leader_and_asks_it_to_fence(
    flow: SourceAndTarget | None,
) -> None:
    leader = ScriptedInternalHerder(session_keys(KEY), frozenset({"x/y ->"}))
    follower = InterWorkerRequests(WorkerRestClient(), session_keys(KEY), flow)
    with running_rest_server(ScriptedHerder(), options_of(leader, flow)) as server:
        follower.put_task_configs(server.address, "x/y ->", [{"a": "1", "b": None}, {}])
        follower.fence_zombies(server.address, "x/y ->")
        with pytest.raises(ConnectRestError, match="404.*Connector nope not found"):
            follower.put_task_configs(server.address, "nope", [])
    assert leader.written == [("x/y ->", [{"a": "1", "b": None}, {}])]
    assert leader.fenced == ["x/y ->"]


def test_a_signed_request_needs_no_password_and_a_password_is_no_signature() -> None:
    leader = ScriptedInternalHerder(session_keys(KEY), frozenset({"int"}))
    follower = InterWorkerRequests(WorkerRestClient(), session_keys(KEY))
    stranger = InterWorkerRequests(WorkerRestClient(), session_keys())
    options = options_of(leader, users=BasicAuthUsers({}))
    with running_rest_server(ScriptedHerder(), options) as server:
        follower.fence_zombies(server.address, "int")
        with pytest.raises(ConnectRestError, match="403.*invalid signature"):
            stranger.fence_zombies(server.address, "int")
    assert leader.fenced == ["int"]


def test_a_signature_of_a_read_is_not_valid_for_a_change() -> None:
    keys = session_keys(KEY)
    read = {name.lower(): value for name, value in keys.sign(b"GET /worker").items()}
    with pytest.raises(Forbidden):
        keys.verify(read, b"")

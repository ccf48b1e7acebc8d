"""A request is carried out here, forwarded, or tried again until its time is over."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from sparkmirror.errors import (
    Conflict,
    NotLeader,
    NotOwner,
    RebalanceNeeded,
    RequestError,
    RequestFailed,
)
from sparkmirror.rest.client.rest_client import RestClient, WorkerResponse, WorkerUnreachable
from sparkmirror.rest.forwarding.forwarded_request import ForwardableRequest
from sparkmirror.rest.forwarding.herder_request_handler import HerderRequestHandler
from sparkmirror.rest.http.call import Reply

LEADER = "http://leader:1"
OWNER = "http://owner:1"


class ScriptedClient(RestClient):
    """A client whose workers answer 200, except those that are down."""

    def __init__(self) -> None:
        super().__init__()
        self.urls: list[str] = []
        self.down: set[str] = set()
        self.error: RequestFailed | None = None

    def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes = b"",
        *,
        timeout_s: float,
    ) -> WorkerResponse:
        del method, headers, body, timeout_s
        self.urls.append(url)
        if any(url.startswith(worker) for worker in self.down):
            raise WorkerUnreachable(f"no connection to {url.partition('/connectors')[0]}: refused")
        if self.error is not None:
            raise self.error
        return WorkerResponse(status=200, headers={}, content=url.encode())


class Scene:
    """A handler with a clock that only its pauses move."""

    def __init__(self) -> None:
        self.client = ScriptedClient()
        self.now_s = 0.0
        self.calls = 0
        self._handler = HerderRequestHandler(
            self.client, 9.5, clock=lambda: self.now_s, sleep=self._sleep
        )

    def _sleep(self, pause_s: float) -> None:
        self.now_s += pause_s

    def send(self, outcome: Callable[[int], Reply | RequestError], query: str = "") -> Reply:
        """Handle a request; `outcome` gives the herder's answer of each call."""
        request = ForwardableRequest(
            method="PUT",
            raw_path="/connectors/c/config",
            query_string=query,
            headers={},
            body=b"",
            base_url="http://self:1",
        )

        def handle() -> Reply:
            self.calls += 1
            found = outcome(self.calls)
            if isinstance(found, RequestError):
                raise found
            return found

        return self._handler.complete_or_forward(handle, request)


def test_a_request_that_this_worker_can_carry_out_is_not_forwarded() -> None:
    scene = Scene()
    assert scene.send(lambda _: Reply(status=204)).status == 204
    assert scene.client.urls == []


@pytest.mark.parametrize("error", [NotLeader(LEADER), NotOwner(OWNER)])
def test_a_request_goes_to_the_worker_that_the_herder_names(error: NotLeader | NotOwner) -> None:
    scene = Scene()
    reply = scene.send(lambda _: error)
    assert reply.content.decode() == f"{error.url}/connectors/c/config?forward=true"
    assert scene.calls == 1


def test_a_request_that_may_not_be_forwarded_is_a_conflict_at_once() -> None:
    scene = Scene()
    with pytest.raises(Conflict) as raised:
        scene.send(lambda _: NotLeader(LEADER), "forward=false")
    assert str(raised.value) == (
        "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"
    )
    assert (scene.client.urls, scene.now_s) == ([], 0.0)


def test_a_request_waits_for_the_end_of_a_rebalance() -> None:
    scene = Scene()

    def outcome(call: int) -> Reply | RequestError:
        return Reply(status=204) if call == 5 else RebalanceNeeded()

    assert scene.send(outcome).status == 204


@pytest.mark.parametrize(("query", "limit_s"), [("", 9.5), ("forward=true", 4.75)])
def test_a_rebalance_that_does_not_end_is_a_conflict_within_the_time_of_a_write(
    query: str, limit_s: float
) -> None:
    scene = Scene()
    with pytest.raises(RebalanceNeeded):
        scene.send(lambda _: RebalanceNeeded(), query)
    assert limit_s - 1 < scene.now_s <= limit_s


def test_a_group_without_a_leader_has_the_conflict_of_connect() -> None:
    scene = Scene()
    with pytest.raises(Conflict) as raised:
        scene.send(lambda _: NotLeader(""))
    assert str(raised.value) == (
        "Cannot complete request momentarily due to no known leader URL, likely because a rebalance"
        " was underway."
    )
    assert scene.now_s > 8


def test_a_request_reaches_the_leader_that_follows_an_unreachable_one() -> None:
    scene = Scene()
    scene.client.down = {LEADER}
    reply = scene.send(lambda call: NotLeader(LEADER if call < 4 else OWNER))
    assert reply.content.decode().startswith(OWNER)


def test_an_unreachable_leader_is_named() -> None:
    scene = Scene()
    scene.client.down = {LEADER}
    with pytest.raises(RequestFailed) as raised:
        scene.send(lambda _: NotLeader(LEADER))
    assert str(raised.value) == (
        "IO Error trying to forward REST request: the leader does not answer: no connection to"
        " http://leader:1: refused"
    )


def test_a_request_that_the_leader_may_have_received_is_not_sent_again() -> None:
    scene = Scene()
    scene.client.error = RequestFailed("the worker at http://leader:1 did not answer: timed out")
    with pytest.raises(RequestFailed, match="did not answer"):
        scene.send(lambda _: NotLeader(LEADER))
    assert len(scene.client.urls) == 1

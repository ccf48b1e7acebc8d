"""What a worker sends on to another one, and what it makes of the answer."""

from __future__ import annotations

import pytest

from sparkmirror.rest.client.rest_client import WorkerResponse
from sparkmirror.rest.forwarding.forwarded_request import ForwardableRequest


def request(
    path: str = "/connectors", query: str = "", headers: dict[str, str] | None = None
) -> ForwardableRequest:
    return ForwardableRequest(
        method="POST",
        raw_path=path,
        query_string=query,
        headers=headers or {},
        body=b"",
        base_url="http://follower:1",
    )


@pytest.mark.parametrize(
    ("query", "forward", "sent"),
    [
        ("", None, "forward=true"),
        ("forward=true", True, "forward=false"),
        ("includeTasks=true&x=a%20b", None, "includeTasks=true&x=a+b&forward=true"),
        ("forward=TRUE&includeTasks=true", True, "includeTasks=true&forward=false"),
    ],
)
def test_a_request_passes_two_other_workers_at_most(
    query: str, forward: bool | None, sent: str
) -> None:
    found = request(query=query)
    assert found.forward is forward
    assert found.may_be_forwarded
    assert found.url_at("http://leader:2/") == f"http://leader:2/connectors?{sent}"


@pytest.mark.parametrize("query", ["forward=false", "forward=no", "forward="])
def test_a_request_with_forward_false_is_not_sent_on(query: str) -> None:
    assert not request(query=query).may_be_forwarded


@pytest.mark.parametrize(
    "path", ["/connectors/a%2Fb/restart", "/connectors/%C3%A4%20b", "http://follower:1/connectors"]
)
def test_the_path_is_sent_as_it_came(path: str) -> None:
    own = path.removeprefix("http://follower:1")
    assert request(path).url_at("https://l:2") == f"https://l:2{own}?forward=true"


def test_credentials_format_and_signature_are_sent_and_nothing_else() -> None:
    headers = {
        "authorization": "Basic x",
        "content-type": "application/json",
        "accept": "*/*",
        "x-connect-authorization": "s",
        "x-connect-request-signature-algorithm": "HmacSHA256",
        "host": "follower:1",
        "connection": "close",
        "content-length": "7",
        "cookie": "c",
    }
    assert request(headers=headers).sent_headers() == {
        "Authorization": "Basic x",
        "Content-Type": "application/json",
        "Accept": "*/*",
        "X-Connect-Authorization": "s",
        "X-Connect-Request-Signature-Algorithm": "HmacSHA256",
    }


def test_the_answer_is_passed_on_and_a_location_leads_to_the_asked_worker() -> None:
    answer = WorkerResponse(
        status=201,
        headers={
            "content-type": "application/json",
            "location": "http://leader:2/connectors/a%20b",
            "date": "now",
        },
        content=b"{}",
    )
    reply = request().reply(answer)
    assert (reply.status, reply.content, reply.media_type) == (201, b"{}", "application/json")
    assert reply.headers == (("Location", "http://follower:1/connectors/a%20b"),)


def test_a_refusal_of_credentials_keeps_its_challenge() -> None:
    answer = WorkerResponse(status=401, headers={"www-authenticate": "Bearer"}, content=b"no")
    assert request().reply(answer).headers == (("WWW-Authenticate", "Bearer"),)

"""A request as it is sent on to another worker, and the answer as the client gets it. Pure.

`forward` limits the number of workers that a request passes, as in Connect:

    the client's request    forward      sent on with    at most
    no `forward`            absent       forward=true    two more workers
    from another worker     true         forward=false   one more worker
    from another worker     false        not at all      409
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from sparkmirror.connect.internal_requests.request_signature import (
    ALGORITHM_HEADER,
    SIGNATURE_HEADER,
)
from sparkmirror.rest.client.rest_client import WorkerResponse
from sparkmirror.rest.http.call import Reply

FORWARD: Final = "forward"
_SENT_HEADERS: Final = (
    "Authorization",
    "Content-Type",
    "Accept",
    SIGNATURE_HEADER,
    ALGORITHM_HEADER,
)
"""Who asks and in which format. A signature of the body is valid for every worker of the group."""
_RETURNED_HEADERS: Final = ("WWW-Authenticate",)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardableRequest:
    """A request of a client, with what is needed to send it to another worker."""

    method: str
    raw_path: str
    """The path as sent, with its escapes."""
    query_string: str
    headers: Mapping[str, str] = field(repr=False)
    """By name in lower case."""
    body: bytes = field(repr=False)
    base_url: str
    """This worker as the client addressed it."""

    @property
    def forward(self) -> bool | None:
        """The parameter `forward`; None if the client did not send it."""
        given = dict(parse_qsl(self.query_string, keep_blank_values=True)).get(FORWARD)
        return None if given is None else given.lower() == "true"

    @property
    def may_be_forwarded(self) -> bool:
        """Whether this worker may send the request to another one."""
        return self.forward is not False

    def url_at(self, worker_url: str) -> str:
        """Return the URL of the request at another worker."""
        assert self.may_be_forwarded
        query = [
            (name, value)
            for name, value in parse_qsl(self.query_string, keep_blank_values=True)
            if name != FORWARD
        ]
        query.append((FORWARD, "true" if self.forward is None else "false"))
        return f"{worker_url.rstrip('/')}{urlsplit(self.raw_path).path}?{urlencode(query)}"

    def sent_headers(self) -> dict[str, str]:
        """Return the headers that the other worker needs."""
        return {
            name: self.headers[name.lower()]
            for name in _SENT_HEADERS
            if name.lower() in self.headers
        }

    def reply(self, answer: WorkerResponse) -> Reply:
        """Return the other worker's answer. A Location leads to this worker."""
        headers = [
            (name, answer.headers[name.lower()])
            for name in _RETURNED_HEADERS
            if name.lower() in answer.headers
        ]
        location = answer.headers.get("location")
        if location is not None:
            headers.append(("Location", self.base_url + urlsplit(location).path))
        return Reply(
            status=answer.status,
            content=answer.content,
            media_type=answer.headers.get("content-type"),
            headers=tuple(headers),
        )

"""One listener's application: takes a request apart, has it answered in time, sends the answer.

    read the body ─► who is it? ─► which route? ─► handler, in a thread ─► headers ─► send

Knows HTTP's machinery and no handler. Whatever goes wrong is answered with Connect's error body.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from email.utils import formatdate

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from sparkmirror.errors import BadRequest, MirrorError
from sparkmirror.rest import access_log
from sparkmirror.rest.access_log import Visit
from sparkmirror.rest.exchange import TEXT, Call, Reply, error_reply
from sparkmirror.rest.faults import fault_reply, surprise_reply
from sparkmirror.rest.options import Limits, RestOptions
from sparkmirror.rest.path import segments
from sparkmirror.rest.route import Match, Route, Router
from sparkmirror.rest.threads import Threads, TooLate
from sparkmirror.rest.worker import unhealthy_reply

_HOST = re.compile(r"[A-Za-z0-9._-]+(:[0-9]+)?|\[[0-9A-Fa-f:.%]+\](:[0-9]+)?")
_NO_CONTENT = 204
_URGENT_CALLS = 4
_DRAINED_AT_MOST = 8
"""So many times the limit of a body are read and thrown away, that the caller hears the refusal."""


class Application:
    """Answers the requests of one listener."""

    def __init__(self, router: Router, options: RestOptions, *, decorated: bool) -> None:
        self._router = router
        self._options = options
        self._limits = options.limits
        self._decorated = decorated
        self._threads = Threads(self._limits.calls, "rest")
        self._urgent_threads = Threads(_URGENT_CALLS, "rest-health")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, as uvicorn wants it."""
        began = time.monotonic()
        request = Request(scope, receive)
        headers = _headers(request)
        user = self._user(headers)
        try:
            reply = await self._reply(request, headers, user)
        except ClientDisconnect:
            return
        except asyncio.CancelledError:
            reply = error_reply(503, "The worker is shutting down", last=True)
        await self._response(reply, request, headers)(scope, receive, send)
        if self._options.access_log:
            took_ms = int((time.monotonic() - began) * 1000)
            access_log.write(_visit(request, headers, user, reply, took_ms))

    def _user(self, headers: Mapping[str, str]) -> str | None:
        users = self._options.users
        return None if users is None else users.admitted(headers.get("authorization"))

    async def _reply(self, request: Request, headers: Mapping[str, str], user: str | None) -> Reply:
        body = await self._body(request, headers)
        if isinstance(body, Reply):
            return body
        try:
            found = self._router.find(request.method, segments(_target(request)), headers)
        except BadRequest as error:
            return fault_reply(error)
        signed = isinstance(found, Match) and found.route.signed
        if self._options.users is not None and user is None and not signed:
            return Reply(status=401, content=b"User cannot access the resource.", media_type=TEXT)
        if isinstance(found, Reply):
            return found
        if found.route.reads_body and body and "content-type" not in headers:
            return error_reply(415, "HTTP 415 Unsupported Media Type")
        call = Call(
            names=found.names,
            query=_query(request),
            headers=headers,
            body=body,
            base=_base(request, headers),
        )
        return await self._handled(found.route, call, f"{request.method} {_target(request)}")

    async def _handled(self, route: Route, call: Call, what: str) -> Reply:
        limits = self._limits
        threads = self._urgent_threads if route.urgent else self._threads
        within_s = limits.health_s if route.urgent else limits.request_s
        try:
            return await threads.run(lambda: route.handler(call), within_s)
        except TooLate:
            waited = f"The worker has not finished {what} within {within_s:g} s."
            if route.urgent:
                return unhealthy_reply(waited)
            return error_reply(500, f"Request timed out. {waited}")
        except MirrorError as error:
            return fault_reply(error)
        except Exception as error:  # noqa: BLE001  the last resort: nobody else would answer
            return surprise_reply(error, what)

    async def _body(self, request: Request, headers: Mapping[str, str]) -> bytes | Reply:
        """Read the body, within limits of size and time."""
        limits = self._limits
        too_large = int(headers.get("content-length", "0")) > limits.body_bytes
        if too_large and headers.get("expect", "").lower() == "100-continue":
            return _too_large(limits)
        parts, size = [], 0
        try:
            async with asyncio.timeout(limits.body_s):
                async for part in request.stream():
                    size += len(part)
                    too_large = too_large or size > limits.body_bytes
                    if size > limits.body_bytes * _DRAINED_AT_MOST:
                        break
                    if not too_large:
                        parts.append(part)
        except TimeoutError:
            message = f"The body of the request did not arrive within {limits.body_s:g} s"
            return error_reply(408, message, last=True)
        return _too_large(limits) if too_large else b"".join(parts)

    def _response(self, reply: Reply, request: Request, headers: Mapping[str, str]) -> Response:
        own = _own_headers(reply)
        taken = {name.lower() for name, _ in own}
        extra = [each for each in self._extra(request, headers) if each[0].lower() not in taken]
        response = Response(reply.content, reply.status)
        # Given as they are: people's scripts look for `Location:`, not for `location:`.
        response.raw_headers = [
            (name.encode("ascii"), value.encode("latin-1")) for name, value in (*extra, *own)
        ]
        return response

    def _extra(self, request: Request, headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        if not self._decorated:
            return ()
        cors = self._options.cors.headers(request.method, headers)
        return (*cors, *self._options.headers.headers())


def _own_headers(reply: Reply) -> list[tuple[str, str]]:
    own = [("Date", formatdate(usegmt=True)), *reply.headers]
    if reply.media_type is not None:
        own.append(("Content-Type", reply.media_type))
    if reply.status != _NO_CONTENT:
        own.append(("Content-Length", str(len(reply.content))))
    if reply.last:
        own.append(("Connection", "close"))
    return own


def _too_large(limits: Limits) -> Reply:
    message = f"The body of the request is larger than {limits.body_bytes} bytes"
    return error_reply(413, message, last=True)


def _headers(request: Request) -> dict[str, str]:
    shown: dict[str, str] = {}
    for name, value in request.headers.items():
        shown[name] = f"{shown[name]},{value}" if name in shown else value
    return shown


def _target(request: Request) -> str:
    raw_path: bytes = request.scope["raw_path"]
    return raw_path.decode("ascii", errors="replace")


def _query(request: Request) -> dict[str, list[str]]:
    return {name: request.query_params.getlist(name) for name in request.query_params}


def _base(request: Request, headers: Mapping[str, str]) -> str:
    host = headers.get("host", "")
    if not _HOST.fullmatch(host):
        name, port = request.scope["server"]
        host = f"[{name}]:{port}" if ":" in name else f"{name}:{port}"
    return f"{request.scope['scheme']}://{host}"


def _visit(
    request: Request, headers: Mapping[str, str], user: str | None, reply: Reply, took_ms: int
) -> Visit:
    query = request.scope["query_string"].decode("ascii", errors="replace")
    target = f"{_target(request)}?{query}" if query else _target(request)
    return Visit(
        client=request.client.host if request.client else "-",
        user=user,
        request=f"{request.method} {target} HTTP/{request.scope['http_version']}",
        status=reply.status,
        sent_bytes=len(reply.content),
        referer=headers.get("referer", ""),
        agent=headers.get("user-agent", ""),
        took_ms=took_ms,
    )

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
from sparkmirror.rest.http import access_log
from sparkmirror.rest.http.access_log import AccessLogEntry
from sparkmirror.rest.http.call import TEXT, Call, Reply, error_reply
from sparkmirror.rest.http.error_mapping import mirror_error_reply, unexpected_error_reply
from sparkmirror.rest.http.handler_threads import HandlerThreads, HandlerTimeout
from sparkmirror.rest.http.path import split_path
from sparkmirror.rest.http.router import RestRouter, Route, RouteMatch
from sparkmirror.rest.options import RestLimits, RestOptions
from sparkmirror.rest.routes.worker_routes import unhealthy_reply

_HOST_HEADER = re.compile(r"[A-Za-z0-9._-]+(:[0-9]+)?|\[[0-9A-Fa-f:.%]+\](:[0-9]+)?")
_NO_CONTENT = 204
_HEALTH_THREADS = 4
_MAX_DRAIN_FACTOR = 8
"""So many times the limit of a body are read and thrown away, that the caller hears the refusal."""


class RestApplication:
    """Answers the requests of one listener."""

    def __init__(self, router: RestRouter, options: RestOptions, *, decorated: bool) -> None:
        self._router = router
        self._options = options
        self._limits = options.limits
        self._adds_headers = decorated
        self._threads = HandlerThreads(self._limits.max_concurrent_requests, "rest")
        self._health_threads = HandlerThreads(_HEALTH_THREADS, "rest-health")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, as uvicorn wants it."""
        began = time.monotonic()
        request = Request(scope, receive)
        headers = _request_headers(request)
        user = self._authenticate(headers)
        try:
            reply = await self._handle(request, headers, user)
        except ClientDisconnect:
            return
        except asyncio.CancelledError:
            reply = error_reply(503, "The worker is shutting down", last=True)
        await self._response(reply, request, headers)(scope, receive, send)
        if self._options.access_log:
            took_ms = int((time.monotonic() - began) * 1000)
            access_log.write(_access_log_entry(request, headers, user, reply, took_ms))

    def _authenticate(self, headers: Mapping[str, str]) -> str | None:
        users = self._options.users
        return None if users is None else users.authenticate(headers.get("authorization"))

    async def _handle(
        self, request: Request, headers: Mapping[str, str], user: str | None
    ) -> Reply:
        body = await self._read_body(request, headers)
        if isinstance(body, Reply):
            return body
        try:
            found = self._router.find(request.method, split_path(_raw_path(request)), headers)
        except BadRequest as error:
            return mirror_error_reply(error)
        signed = isinstance(found, RouteMatch) and found.route.signed
        if self._options.users is not None and user is None and not signed:
            return Reply(status=401, content=b"User cannot access the resource.", media_type=TEXT)
        if isinstance(found, Reply):
            return found
        if found.route.reads_body and body and "content-type" not in headers:
            return error_reply(415, "HTTP 415 Unsupported Media Type")
        call = Call(
            path_parameters=found.path_parameters,
            query=_query_parameters(request),
            headers=headers,
            body=body,
            base_url=_base_url(request, headers),
        )
        return await self._call_handler(found.route, call, f"{request.method} {_raw_path(request)}")

    async def _call_handler(self, route: Route, call: Call, what: str) -> Reply:
        limits = self._limits
        threads = self._health_threads if route.urgent else self._threads
        within_s = limits.health_timeout_s if route.urgent else limits.request_timeout_s
        try:
            return await threads.run(lambda: route.handler(call), within_s)
        except HandlerTimeout:
            waited = f"The worker has not finished {what} within {within_s:g} s."
            if route.urgent:
                return unhealthy_reply(waited)
            return error_reply(500, f"Request timed out. {waited}")
        except MirrorError as error:
            return mirror_error_reply(error)
        except Exception as error:  # noqa: BLE001  the last resort: nobody else would answer
            return unexpected_error_reply(error, what)

    async def _read_body(self, request: Request, headers: Mapping[str, str]) -> bytes | Reply:
        """Read the body, within limits of size and time."""
        limits = self._limits
        too_large = int(headers.get("content-length", "0")) > limits.max_body_bytes
        if too_large and headers.get("expect", "").lower() == "100-continue":
            return _too_large_reply(limits)
        parts, size = [], 0
        try:
            async with asyncio.timeout(limits.body_timeout_s):
                async for part in request.stream():
                    size += len(part)
                    too_large = too_large or size > limits.max_body_bytes
                    if size > limits.max_body_bytes * _MAX_DRAIN_FACTOR:
                        break
                    if not too_large:
                        parts.append(part)
        except TimeoutError:
            message = f"The body of the request did not arrive within {limits.body_timeout_s:g} s"
            return error_reply(408, message, last=True)
        return _too_large_reply(limits) if too_large else b"".join(parts)

    def _response(self, reply: Reply, request: Request, headers: Mapping[str, str]) -> Response:
        own = _reply_headers(reply)
        taken = {name.lower() for name, _ in own}
        extra = [
            each for each in self._extra_headers(request, headers) if each[0].lower() not in taken
        ]
        response = Response(reply.content, reply.status)
        # Given as they are: people's scripts look for `Location:`, not for `location:`.
        response.raw_headers = [
            (name.encode("ascii"), value.encode("latin-1")) for name, value in (*extra, *own)
        ]
        return response

    def _extra_headers(
        self, request: Request, headers: Mapping[str, str]
    ) -> tuple[tuple[str, str], ...]:
        if not self._adds_headers:
            return ()
        cors = self._options.cors.headers(request.method, headers)
        return (*cors, *self._options.response_headers.headers())


def _reply_headers(reply: Reply) -> list[tuple[str, str]]:
    own = [("Date", formatdate(usegmt=True)), *reply.headers]
    if reply.media_type is not None:
        own.append(("Content-Type", reply.media_type))
    if reply.status != _NO_CONTENT:
        own.append(("Content-Length", str(len(reply.content))))
    if reply.closes_connection:
        own.append(("Connection", "close"))
    return own


def _too_large_reply(limits: RestLimits) -> Reply:
    message = f"The body of the request is larger than {limits.max_body_bytes} bytes"
    return error_reply(413, message, last=True)


def _request_headers(request: Request) -> dict[str, str]:
    shown: dict[str, str] = {}
    for name, value in request.headers.items():
        shown[name] = f"{shown[name]},{value}" if name in shown else value
    return shown


def _raw_path(request: Request) -> str:
    raw_path: bytes = request.scope["raw_path"]
    return raw_path.decode("ascii", errors="replace")


def _query_parameters(request: Request) -> dict[str, list[str]]:
    return {name: request.query_params.getlist(name) for name in request.query_params}


def _base_url(request: Request, headers: Mapping[str, str]) -> str:
    host = headers.get("host", "")
    if not _HOST_HEADER.fullmatch(host):
        name, port = request.scope["server"]
        host = f"[{name}]:{port}" if ":" in name else f"{name}:{port}"
    return f"{request.scope['scheme']}://{host}"


def _access_log_entry(
    request: Request, headers: Mapping[str, str], user: str | None, reply: Reply, took_ms: int
) -> AccessLogEntry:
    query = request.scope["query_string"].decode("ascii", errors="replace")
    target = f"{_raw_path(request)}?{query}" if query else _raw_path(request)
    return AccessLogEntry(
        client=request.client.host if request.client else "-",
        user=user,
        request=f"{request.method} {target} HTTP/{request.scope['http_version']}",
        status=reply.status,
        sent_bytes=len(reply.content),
        referer=headers.get("referer", ""),
        user_agent=headers.get("user-agent", ""),
        duration_ms=took_ms,
    )

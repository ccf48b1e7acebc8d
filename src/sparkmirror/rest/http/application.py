"""The ASGI application of one listener: reads a request, calls its handler, sends the reply.

    find the route ─► authenticate ─► read the body ─► handler, in a thread ─► headers ─► send

A handler that waits for nothing runs in the event loop, so that a busy worker answers it without a
change of threads. A request that another worker of the group must carry out is forwarded to it by
the thread of its handler. The connection discards the body of a client that is not authenticated.
Every other error has Connect's error body.
"""

from __future__ import annotations

import asyncio
import re
import time
from email.utils import formatdate

from sparkmirror.errors import BadRequest, MirrorError
from sparkmirror.rest.authentication.authenticator import Authenticator
from sparkmirror.rest.forwarding.forwarded_request import ForwardableRequest
from sparkmirror.rest.forwarding.herder_request_handler import HerderRequestHandler
from sparkmirror.rest.http import access_log
from sparkmirror.rest.http.access_log import AccessLogEntry
from sparkmirror.rest.http.asgi_request import (
    ClientDisconnected,
    HttpRequest,
    Receive,
    Scope,
    Send,
    send_response,
)
from sparkmirror.rest.http.call import TEXT, Call, Reply, error_reply
from sparkmirror.rest.http.error_mapping import mirror_error_reply, unexpected_error_reply
from sparkmirror.rest.http.handler_threads import HandlerThreads, HandlerTimeout
from sparkmirror.rest.http.path import split_path
from sparkmirror.rest.http.router import RestRouter, Route, RouteMatch
from sparkmirror.rest.server_options import RestLimits, RestOptions

_HOST_HEADER = re.compile(r"[A-Za-z0-9._-]+(:[0-9]+)?|\[[0-9A-Fa-f:.%]+\](:[0-9]+)?")
_NO_CONTENT = 204
_HEALTH_THREADS = 4
_MAX_DRAIN_FACTOR = 8
"""The server reads and discards up to this many times the body limit, so that the client reads the
413 instead of a connection reset."""


class RestApplication:
    """Answers the requests of one listener.

    `adds_headers` turns on CORS headers and the operator's response headers.
    """

    def __init__(self, router: RestRouter, options: RestOptions, *, adds_headers: bool) -> None:
        self._router = router
        self._options = options
        self._limits = options.limits
        self._adds_headers = adds_headers
        self._authenticator = Authenticator(options.users, options.tokens)
        self._request_handler = HerderRequestHandler(options.client)
        self._threads = HandlerThreads(self._limits.max_concurrent_requests, "rest")
        self._health_threads = HandlerThreads(_HEALTH_THREADS, "rest-health")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. uvicorn calls this."""
        started = time.monotonic()
        request = HttpRequest(scope, receive)
        user = self._authenticator.authenticate(request.headers.get("authorization"))
        try:
            reply = await self._handle(request, user)
        except ClientDisconnected:
            return
        except asyncio.CancelledError:
            reply = error_reply(503, "The worker is shutting down", closes_connection=True)
        await send_response(
            send, reply.status, self._response_headers(request, reply), reply.content
        )
        if self._options.access_log:
            duration_ms = int((time.monotonic() - started) * 1000)
            access_log.write(_access_log_entry(request, user, reply, duration_ms))

    async def _handle(self, request: HttpRequest, user: str | None) -> Reply:
        headers = request.headers
        try:
            found = self._router.find(request.method, split_path(request.raw_path), headers)
        except BadRequest as error:
            return mirror_error_reply(error)
        signed = isinstance(found, RouteMatch) and found.route.signed
        if self._authenticator.is_required and user is None and not signed:
            return _unauthorized_reply(request, self._authenticator.challenge_headers)
        body = await self._read_body(request)
        if isinstance(body, Reply):
            return body
        if isinstance(found, Reply):
            return found
        if found.route.reads_body and body and "content-type" not in headers:
            return error_reply(415, "HTTP 415 Unsupported Media Type")
        call = Call(
            path_parameters=found.path_parameters,
            query=request.query,
            headers=headers,
            body=body,
            target=request.target,
            base_url=_base_url(request),
        )
        return await self._call_handler(found.route, call, request)

    async def _call_handler(self, route: Route, call: Call, request: HttpRequest) -> Reply:
        limits, request_line = self._limits, f"{request.method} {request.raw_path}"
        forwardable = _forwardable(request, call)
        threads = self._health_threads if route.urgent else self._threads
        timeout_s = limits.health_timeout_s if route.urgent else limits.request_timeout_s
        try:
            if route.is_immediate(call):
                return route.handler(call)
            return await threads.run(
                lambda: self._request_handler.complete_or_forward(
                    lambda: route.handler(call), forwardable
                ),
                timeout_s,
            )
        except HandlerTimeout:
            return route.timeout_reply(
                f"The worker has not finished {request_line} within {timeout_s:g} s."
            )
        except MirrorError as error:
            return mirror_error_reply(error)
        except Exception as error:  # noqa: BLE001  an unanswered client would wait until its timeout
            return unexpected_error_reply(error, request_line)

    async def _read_body(self, request: HttpRequest) -> bytes | Reply:
        """Return the body, or the refusal of a body that is too large or too slow."""
        limits = self._limits
        too_large = int(request.headers.get("content-length", "0")) > limits.max_body_bytes
        if too_large and request.headers.get("expect", "").lower() == "100-continue":
            return _too_large_reply(limits)
        parts, size = [], 0
        try:
            async with asyncio.timeout(limits.body_timeout_s):
                async for part in request.body_parts():
                    size += len(part)
                    too_large = too_large or size > limits.max_body_bytes
                    if size > limits.max_body_bytes * _MAX_DRAIN_FACTOR:
                        break
                    if not too_large:
                        parts.append(part)
        except TimeoutError:
            message = f"The body of the request did not arrive within {limits.body_timeout_s:g} s"
            return error_reply(408, message, closes_connection=True)
        return _too_large_reply(limits) if too_large else b"".join(parts)

    def _response_headers(self, request: HttpRequest, reply: Reply) -> list[tuple[str, str]]:
        """The headers of a reply. An extra header never replaces one of the reply itself."""
        own = _reply_headers(reply)
        own_names = {name.lower() for name, _ in own}
        extra = [each for each in self._extra_headers(request) if each[0].lower() not in own_names]
        return [*extra, *own]

    def _extra_headers(self, request: HttpRequest) -> tuple[tuple[str, str], ...]:
        if not self._adds_headers:
            return ()
        cors = self._options.cors.headers(request.method, request.headers)
        return (*cors, *self._options.response_headers.headers())


def _reply_headers(reply: Reply) -> list[tuple[str, str]]:
    headers = [("Date", formatdate(usegmt=True)), *reply.headers]
    if reply.media_type is not None:
        headers.append(("Content-Type", reply.media_type))
    if reply.status != _NO_CONTENT:
        headers.append(("Content-Length", str(len(reply.content))))
    if reply.closes_connection:
        headers.append(("Connection", "close"))
    return headers


def _unauthorized_reply(request: HttpRequest, challenge: tuple[tuple[str, str], ...]) -> Reply:
    return Reply(
        status=401,
        content=b"User cannot access the resource.",
        media_type=TEXT,
        headers=challenge,
        # A client that expects 100 may leave out the body: the next request has no clear start.
        closes_connection="expect" in request.headers,
    )


def _too_large_reply(limits: RestLimits) -> Reply:
    message = f"The body of the request is larger than {limits.max_body_bytes} bytes"
    return error_reply(413, message, closes_connection=True)


def _forwardable(request: HttpRequest, call: Call) -> ForwardableRequest:
    return ForwardableRequest(
        method=request.method,
        raw_path=request.raw_path,
        query_string=request.query_string,
        headers=call.headers,
        body=call.body,
        base_url=call.base_url,
    )


def _base_url(request: HttpRequest) -> str:
    host = request.headers.get("host", "")
    if not _HOST_HEADER.fullmatch(host):
        host = _local_host(request.server)
    return f"{request.scheme}://{host}"


def _local_host(server: tuple[str, int] | None) -> str:
    if server is None:
        return "localhost"
    name, port = server
    return f"[{name}]:{port}" if ":" in name else f"{name}:{port}"


def _access_log_entry(
    request: HttpRequest, user: str | None, reply: Reply, duration_ms: int
) -> AccessLogEntry:
    return AccessLogEntry(
        client=request.client_host,
        user=user,
        request=f"{request.method} {request.target} HTTP/{request.http_version}",
        status=reply.status,
        sent_bytes=len(reply.content),
        referer=request.headers.get("referer", ""),
        user_agent=request.headers.get("user-agent", ""),
        duration_ms=duration_ms,
    )

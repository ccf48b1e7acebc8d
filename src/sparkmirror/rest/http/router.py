"""Chooses the handler for a method and a path, in the order of Connect's own server.

First the path (404), then the method (405), then the media types (415, 406). HEAD is GET without
the body. OPTIONS lists the methods. These errors have an error body and, as in Connect, no
Content-Type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from sparkmirror.mirror.connect_topics.java_hash_map import in_hash_map_order
from sparkmirror.rest.http.call import TEXT, Call, Reply, error_reply
from sparkmirror.rest.http.media_types import accepts_json, consumes_json

Handler: TypeAlias = Callable[[Call], Reply]


def request_timed_out(reason: str) -> Reply:
    """Return Connect's error for a handler that did not finish in time."""
    return error_reply(500, f"Request timed out. {reason}")


def _never(_call: Call) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One method on one path. `{...}` in the path matches any one segment."""

    method: str
    path: str
    handler: Handler
    reads_body: bool = False
    urgent: bool = False
    """Whether the route has its own threads and is answered even if all others are busy."""
    produces_json: bool = True
    """Whether the answer is JSON. Another route chooses the media type itself."""
    signed: bool = False
    """Whether other workers send this request, with a signature in place of a password."""
    is_immediate: Callable[[Call], bool] = _never
    """Whether the handler of this call waits for nothing, so that it needs no thread of its own."""
    timeout_reply: Callable[[str], Reply] = request_timed_out
    """Makes the reply, from the reason, if the handler does not finish in time."""

    def match(self, segments: tuple[str, ...]) -> Mapping[str, str] | None:
        """Return the path parameters; None if the path does not match."""
        pattern = tuple(self.path.split("/")[1:]) if self.path != "/" else ()
        if len(pattern) != len(segments):
            return None
        parameters = {}
        for expected, segment in zip(pattern, segments, strict=True):
            if expected.startswith("{"):
                parameters[expected[1:-1]] = segment
            elif expected != segment:
                return None
        return parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteMatch:
    """A route and the parameters that its path matched."""

    route: Route
    path_parameters: Mapping[str, str]


class RestRouter:
    """All routes of one listener."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._routes = tuple(routes)

    def find(
        self, method: str, segments: tuple[str, ...], headers: Mapping[str, str]
    ) -> RouteMatch | Reply:
        """Return the route, or the reply of a request that has none. Raises BadRequest."""
        matches = {
            route.method: RouteMatch(route=route, path_parameters=parameters)
            for route in self._routes
            if (parameters := route.match(segments)) is not None
        }
        if not matches:
            return error_reply(404, "HTTP 404 Not Found", has_media_type=False)
        if method == "OPTIONS":
            return _options_reply(matches)
        match = matches.get("GET" if method == "HEAD" else method)
        if match is None:
            return error_reply(405, "HTTP 405 Method Not Allowed", has_media_type=False)
        return _media_type_error(headers, match.route) or match


def _options_reply(methods: Iterable[str]) -> Reply:
    allowed = dict.fromkeys([*methods, "OPTIONS"])
    if "GET" in allowed:
        allowed["HEAD"] = None
    ordered = list(in_hash_map_order(allowed))
    return Reply(
        status=200,
        content=", ".join(ordered).encode(),
        media_type=TEXT,
        headers=(("Allow", ",".join(ordered)),),
    )


def _media_type_error(headers: Mapping[str, str], route: Route) -> Reply | None:
    if not consumes_json(headers.get("content-type")):
        return error_reply(415, "HTTP 415 Unsupported Media Type", has_media_type=False)
    if route.produces_json and not accepts_json(headers.get("accept")):
        return error_reply(406, "HTTP 406 Not Acceptable", has_media_type=False)
    return None

"""Which handler answers which method on which path.

Knows how Connect's own server chooses: first the path (404), then the method (405), then the media
types (415, 406). HEAD is GET without the body; OPTIONS lists what there is. These refusals carry
an error body but, as in the original, no Content-Type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from sparkmirror.mirror.connect_topics.java_maps import in_hash_map_order
from sparkmirror.rest.http.call import TEXT, Call, Reply, error_reply
from sparkmirror.rest.http.media_types import accepts_json, consumes_json

Handler: TypeAlias = Callable[[Call], Reply]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One method on one path. `{...}` in the path stands for any one segment."""

    method: str
    path: str
    handler: Handler
    reads_body: bool = False
    urgent: bool = False
    """Answered however busy the worker is."""
    signed: bool = False
    """Meant for other workers, who sign it: nobody logs in for it."""

    def match(self, segments: tuple[str, ...]) -> Mapping[str, str] | None:
        """Match the segments of a path; None if this route is about another path."""
        pattern = tuple(self.path.split("/")[1:]) if self.path != "/" else ()
        if len(pattern) != len(segments):
            return None
        names = {}
        for wanted, given in zip(pattern, segments, strict=True):
            if wanted.startswith("{"):
                names[wanted[1:-1]] = given
            elif wanted != given:
                return None
        return names


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteMatch:
    """A route, and what its path stands for this time."""

    route: Route
    path_parameters: Mapping[str, str]


class RestRouter:
    """All routes of one listener."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._routes = tuple(routes)

    def find(
        self, method: str, segments: tuple[str, ...], headers: Mapping[str, str]
    ) -> RouteMatch | Reply:
        """Choose the route, or say why there is none."""
        on_path = {
            route.method: RouteMatch(route=route, path_parameters=names)
            for route in self._routes
            if (names := route.match(segments)) is not None
        }
        if not on_path:
            return error_reply(404, "HTTP 404 Not Found", typed=False)
        if method == "OPTIONS":
            return _options_reply(on_path)
        match = on_path.get("GET" if method == "HEAD" else method)
        if match is None:
            return error_reply(405, "HTTP 405 Method Not Allowed", typed=False)
        return _media_type_error(headers) or match


def _options_reply(methods: Iterable[str]) -> Reply:
    known = dict.fromkeys([*methods, "OPTIONS"])
    if "GET" in known:
        known["HEAD"] = None
    listed = list(in_hash_map_order(known))
    return Reply(
        status=200,
        content=", ".join(listed).encode(),
        media_type=TEXT,
        headers=(("Allow", ",".join(listed)),),
    )


def _media_type_error(headers: Mapping[str, str]) -> Reply | None:
    if not consumes_json(headers.get("content-type")):
        return error_reply(415, "HTTP 415 Unsupported Media Type", typed=False)
    if not accepts_json(headers.get("accept")):
        return error_reply(406, "HTTP 406 Not Acceptable", typed=False)
    return None

"""The route of the description: /openapi.json. It is not in Connect's API."""

from __future__ import annotations

from collections.abc import Sequence

from sparkmirror.rest.http.call import Call, Reply, json_reply
from sparkmirror.rest.http.router import Route
from sparkmirror.rest.openapi.document import openapi_document


def with_openapi_route(routes: Sequence[Route], *, basic: bool, bearer: bool) -> tuple[Route, ...]:
    """Return the routes and one more, which describes all of them and itself."""

    def description(_call: Call) -> Reply:
        return reply

    described = (*routes, Route(method="GET", path="/openapi.json", handler=description))
    reply = json_reply(openapi_document(described, basic=basic, bearer=bearer))
    return described

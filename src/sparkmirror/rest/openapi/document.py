"""Makes the OpenAPI description of the routes of a listener."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from sparkmirror.mirror.connect_topics.connect_json import JsonValue
from sparkmirror.rest.http.call import JSON, TEXT
from sparkmirror.rest.http.router import Route
from sparkmirror.rest.openapi.operations import OPERATIONS, Operation
from sparkmirror.rest.openapi.schemas import SCHEMAS, Schema, reference

OPENAPI_VERSION = "3.1.0"
API_VERSION = "4.3.0"
"""The release of Connect whose API this is."""
_PATH_PARAMETER = re.compile(r"\{(\w+)\}")
_STATUS_TEXTS = {
    200: "The answer.",
    201: "Created.",
    202: "Accepted.",
    204: "Done.",
    400: "The request is faulty; the message says how.",
    403: "Not allowed here.",
    404: "There is no such connector, task, plug-in or logger.",
    409: "It exists already, or it is not possible at this moment.",
    500: "The body is faulty, or the worker failed.",
    503: "The worker is starting or stopping.",
}
_BASIC: Schema = {"type": "http", "scheme": "basic"}
_BEARER: Schema = {"type": "http", "scheme": "bearer"}


def openapi_document(routes: Iterable[Route], *, basic: bool, bearer: bool) -> JsonValue:
    """Return the description of all routes but those between workers.

    `basic` and `bearer` say which credentials the server accepts. Raises KeyError for a route that
    `operations` does not have.
    """
    schemes = dict(_schemes(basic=basic, bearer=bearer))
    paths: dict[str, dict[str, JsonValue]] = {}
    for route in routes:
        if not route.signed:
            operation = _operation(route, OPERATIONS[route.method, route.path], bool(schemes))
            paths.setdefault(route.path, {})[route.method.lower()] = operation
    security: list[JsonValue] = [{name: []} for name in schemes]
    return {
        "openapi": OPENAPI_VERSION,
        "info": {"title": "Connect REST API of sparkmirror", "version": API_VERSION},
        "paths": paths,
        "components": {"schemas": SCHEMAS, "securitySchemes": schemes},
        "security": security,
    }


def _schemes(*, basic: bool, bearer: bool) -> Iterable[tuple[str, Schema]]:
    if basic:
        yield "basic", _BASIC
    if bearer:
        yield "bearer", _BEARER


def _operation(route: Route, operation: Operation, is_protected: bool) -> JsonValue:
    path: list[JsonValue] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in _PATH_PARAMETER.findall(route.path)
    ]
    query: list[JsonValue] = [
        {"name": name, "in": "query", "required": False, "schema": schema}
        for name, schema in operation.query.items()
    ]
    responses: dict[str, JsonValue] = {
        str(status): _response(_STATUS_TEXTS[status], schema, operation.media_types)
        for status, schema in operation.answers.items()
    }
    if is_protected:
        responses["401"] = {
            "description": "The credentials are missing or wrong.",
            "content": {TEXT: {"schema": {"type": "string"}}},
        }
    responses["default"] = _response("An error that any request may get.", "Error")
    described: dict[str, JsonValue] = {
        "summary": operation.summary,
        "operationId": _operation_id(route),
        "parameters": [*path, *query],
        "responses": responses,
    }
    if operation.body is not None:
        content = {JSON: {"schema": reference(operation.body)}}
        described["requestBody"] = {"required": True, "content": content}
    return described


def _response(
    text: str, schema: str | None, media_types: Sequence[str] = (JSON,)
) -> Mapping[str, JsonValue]:
    if schema is None:
        return {"description": text}
    content = {media_type: {"schema": reference(schema)} for media_type in media_types}
    return {"description": text, "content": content}


def _operation_id(route: Route) -> str:
    parts = [part for part in re.split(r"\W+", route.path) if part]
    return "_".join([route.method.lower(), *parts])

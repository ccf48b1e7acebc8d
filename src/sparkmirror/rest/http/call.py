"""What a handler receives and returns: a call and a reply. Handlers see no HTTP machinery."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sparkmirror.mirror.connect_topics.connect_json import JsonValue, encode

JSON = "application/json"
TEXT = "text/plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request whose route is known."""

    path_parameters: Mapping[str, str]
    """The segments of the path that match the `{...}` of the route, by name."""
    query: Mapping[str, Sequence[str]]
    headers: Mapping[str, str] = field(repr=False)
    """By name in lower case. Values of one name are joined with a comma."""
    body: bytes = field(repr=False)
    target: str = ""
    """The path and the query, as sent."""
    base_url: str
    """The server as the client addressed it: `http://host:port`."""

    def boolean_parameter(self, name: str, *, default: bool) -> bool:
        """Return a query parameter as Java parses a boolean: everything but true is false."""
        given = next(iter(self.query.get(name, ())), "")
        return given.lower() == "true" if given else default

    def parameter(self, name: str) -> str | None:
        """Return the first query parameter of this name."""
        return next(iter(self.query.get(name, ())), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A response, ready to be sent."""

    status: int
    content: bytes = b""
    media_type: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    closes_connection: bool = False
    """Whether the server closes the connection after this response."""


def json_reply(
    value: JsonValue, status: int = 200, headers: tuple[tuple[str, str], ...] = ()
) -> Reply:
    """Return a reply with the bytes that Connect writes for this JSON."""
    return Reply(status=status, content=encode(value), media_type=JSON, headers=headers)


def large_json_reply(value: JsonValue) -> Reply:
    """Return a reply for which Connect has no bytes: Python's encoder is many times as quick."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Reply(status=200, content=text.encode("utf-8", "replace"), media_type=JSON)


def error_reply(
    status: int, message: str, *, has_media_type: bool = True, closes_connection: bool = False
) -> Reply:
    """Return a reply with Connect's error body.

    `has_media_type` is False for errors before a method is chosen: Connect sends no Content-Type.
    """
    # An unpaired surrogate in the message cannot be encoded and would cause another error.
    text = message.encode("utf-8", errors="replace").decode("utf-8")
    return Reply(
        status=status,
        content=encode({"error_code": status, "message": text}),
        media_type=JSON if has_media_type else None,
        closes_connection=closes_connection,
    )

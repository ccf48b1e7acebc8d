"""What a handler is given and what it gives back: a call and a reply, without HTTP's machinery."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sparkmirror.mirror.connect_topics.connect_json import JsonValue, encode

JSON = "application/json"
TEXT = "text/plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request whose route is known."""

    path_parameters: Mapping[str, str]
    """What stands in the path where the route has `{...}`."""
    query: Mapping[str, Sequence[str]]
    headers: Mapping[str, str]
    """By name in lower case; several of one name are joined with a comma."""
    body: bytes
    base_url: str
    """The server as the caller addressed it: `http://host:port`."""

    def boolean_parameter(self, name: str, *, default: bool) -> bool:
        """Read a query parameter as Java reads a boolean: anything but true is false."""
        given = next(iter(self.query.get(name, ())), "")
        return given.lower() == "true" if given else default

    def parameter(self, name: str) -> str | None:
        """Read a query parameter; the first one counts."""
        return next(iter(self.query.get(name, ())), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer, ready to be sent."""

    status: int
    content: bytes = b""
    media_type: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    closes_connection: bool = False
    """Whether the connection is closed after it."""


def json_reply(
    value: JsonValue, status: int = 200, headers: tuple[tuple[str, str], ...] = ()
) -> Reply:
    """Answer with JSON, in the bytes that Connect would write."""
    return Reply(status=status, content=encode(value), media_type=JSON, headers=headers)


def error_reply(status: int, message: str, *, typed: bool = True, last: bool = False) -> Reply:
    """Answer with Connect's error body. What fails before a method is chosen is not typed."""
    # An unpaired surrogate in a message must not turn one error into another.
    text = message.encode("utf-8", errors="replace").decode("utf-8")
    content = encode({"error_code": status, "message": text})
    return Reply(
        status=status, content=content, media_type=JSON if typed else None, closes_connection=last
    )

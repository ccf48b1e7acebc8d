"""JSON as Kafka Connect's converter writes and reads it: no spaces, the same bytes as Jackson.

Strings keep non-ASCII characters; only `"`, `\\` and control characters are escaped, the latter
with upper-case digits. Integers have 64 bits, other numbers are doubles in Java's notation. Members
keep the order of the mapping; `java_hash_map` gives the order of a HashMap.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from sparkmirror.errors import RecordError
from sparkmirror.mirror.connect_topics.java_to_string import double_to_string

JsonValue: TypeAlias = (
    "None | bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue]"
)

LARGEST_INTEGER = 2**63 - 1
SMALLEST_INTEGER = -(2**63)

_NEEDS_ESCAPE = re.compile(r'["\\\x00-\x1f]')
_SHORT_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\f": "\\f",
    "\r": "\\r",
}


def encode(value: JsonValue) -> bytes:
    """Return the JSON of `value` in UTF-8. Raises RecordError."""
    try:
        return _text(value).encode("utf-8")
    except UnicodeEncodeError as error:
        raise RecordError("Incomplete surrogate pair in a string") from error


def decode(data: bytes) -> JsonValue:
    """Parse JSON. Raises RecordError."""
    try:
        value: JsonValue = json.loads(data.decode("utf-8"), parse_constant=_reject_constant)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"Not JSON: {error}") from error
    return value


def decode_object(data: bytes) -> Mapping[str, JsonValue]:
    """Parse a JSON object. Raises RecordError."""
    value = decode(data)
    if not isinstance(value, Mapping):
        raise RecordError(f"A JSON object was expected, not {type(value).__name__}")
    return value


def _text(value: JsonValue) -> str:
    if isinstance(value, str):
        return _string(value)
    if value is None or isinstance(value, int | float):  # before the slower checks of Mapping
        return _scalar(value)
    if isinstance(value, Mapping):
        return "{" + ",".join([_name(k) + _text(v) for k, v in value.items()]) + "}"
    return "[" + ",".join(map(_text, value)) + "]"


def _scalar(value: None | bool | int | float) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if not math.isfinite(value):
            raise RecordError(f"{value} is not a JSON number")
        return double_to_string(value)
    if not SMALLEST_INTEGER <= value <= LARGEST_INTEGER:
        raise RecordError(f"{value} does not fit in 64 bits")
    return str(value)


@lru_cache(maxsize=1024)  # the names of members are few
def _name(text: str) -> str:
    return _string(text) + ":"


def _string(text: str) -> str:
    return '"' + _NEEDS_ESCAPE.sub(_escape, text) + '"'


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    return _SHORT_ESCAPES.get(character) or f"\\u{ord(character):04X}"


def _reject_constant(name: str) -> JsonValue:
    raise ValueError(f"{name} is not a JSON number")

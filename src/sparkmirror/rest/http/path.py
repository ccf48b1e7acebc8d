"""The path of a request, taken apart before it is decoded.

A connector's name may hold anything: `a->b`, `a b`, `a/b`. So the path is split at its slashes
first and each segment decoded afterwards. What follows a `;` in a segment is a parameter in
Java's eyes and no part of the name; `+` is a plus. Dots are names, not directories.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote_to_bytes

from sparkmirror.errors import BadRequest

_ABSOLUTE_URL = re.compile(r"https?://[^/]*", re.IGNORECASE)
_BROKEN_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")
_SAFE_CHARACTERS = "!$&'()*+,=:@-._~"


def split_path(raw_path: str) -> tuple[str, ...]:
    """Split a path into its decoded segments; a slash at the end counts for nothing."""
    path = _ABSOLUTE_URL.sub("", raw_path, count=1)
    if path in ("", "/"):
        return ()
    if not path.startswith("/"):
        raise BadRequest("The path of the request must begin with a slash")
    parts = path.removesuffix("/")[1:].split("/")
    if "" in parts:
        raise BadRequest("Ambiguous URI empty segment")
    return tuple(_decode(part.partition(";")[0]) for part in parts)


def quote_segment(name: str) -> str:
    """Write a name as one segment of a path, such that `segments` finds it again."""
    return quote(name, safe=_SAFE_CHARACTERS)


def _decode(part: str) -> str:
    if _BROKEN_ESCAPE.search(part):
        raise BadRequest("The path of the request holds a % that escapes nothing: write it as %25")
    try:
        return unquote_to_bytes(part).decode("utf-8")
    except UnicodeDecodeError:
        raise BadRequest("The path of the request is not UTF-8") from None

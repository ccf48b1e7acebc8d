"""Splits the path of a request into segments and decodes them.

A connector's name may contain any character: `a->b`, `a b`, `a/b`. So the path is split at its
slashes first, then each segment is decoded. As in Java, text after a `;` in a segment is a
parameter and not part of the name, and `+` is a plus. `.` and `..` are ordinary names.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote_to_bytes

from sparkmirror.errors import BadRequest

_ABSOLUTE_URL = re.compile(r"https?://[^/]*", re.IGNORECASE)
_BROKEN_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")
_SAFE_CHARACTERS = "!$&'()*+,=:@-._~"


def split_path(raw_path: str) -> tuple[str, ...]:
    """Return the decoded segments of a path. A slash at the end is ignored. Raises BadRequest."""
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
    """Return a name encoded as one segment. `split_path` decodes it."""
    return quote(name, safe=_SAFE_CHARACTERS)


def _decode(part: str) -> str:
    if _BROKEN_ESCAPE.search(part):
        raise BadRequest("The path of the request holds a % that escapes nothing: write it as %25")
    try:
        return unquote_to_bytes(part).decode("utf-8")
    except UnicodeDecodeError:
        raise BadRequest("The path of the request is not UTF-8") from None

"""Media types: what a caller sends and what it is ready to read. Everything here is JSON."""

from __future__ import annotations

import re

from sparkmirror.errors import BadRequest

_NAME = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_MEDIA_TYPE = re.compile(rf"\s*({_NAME})/({_NAME})\s*(;.*)?")
_ZERO_WEIGHT = re.compile(r";\s*q\s*=\s*0(\.0*)?\s*(;|$)", re.IGNORECASE)


def consumes_json(content_type: str | None) -> bool:
    """Say whether a body announced so can be read. BadRequest if it is no media type at all."""
    if content_type is None:
        return True
    found = _MEDIA_TYPE.fullmatch(content_type)
    if found is None:
        raise BadRequest("The Content-Type of the request is no media type; use application/json")
    return _covers_json(found)


def accepts_json(accept: str | None) -> bool:
    """Say whether the caller would read JSON. What is no media type among its wishes is ignored."""
    if accept is None or not accept.strip():
        return True
    wishes = [found for wish in accept.split(",") if (found := _MEDIA_TYPE.fullmatch(wish))]
    return not wishes or any(_covers_json(wish) and not _refused(wish) for wish in wishes)


def _covers_json(found: re.Match[str]) -> bool:
    kind, subtype = found[1].lower(), found[2].lower()
    return kind in ("*", "application") and subtype in ("*", "json")


def _refused(wish: re.Match[str]) -> bool:
    return _ZERO_WEIGHT.search(wish[3] or "") is not None

"""Media types of requests (Content-Type) and of responses (Accept). The API is JSON only."""

from __future__ import annotations

import re

from sparkmirror.errors import BadRequest

_NAME = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_MEDIA_TYPE = re.compile(rf"\s*({_NAME})/({_NAME})\s*(;.*)?")
_ZERO_WEIGHT = re.compile(r";\s*q\s*=\s*0(\.0*)?\s*(;|$)", re.IGNORECASE)


def consumes_json(content_type: str | None) -> bool:
    """Return whether a body of this Content-Type is JSON. Raises BadRequest if it is malformed."""
    if content_type is None:
        return True
    found = _MEDIA_TYPE.fullmatch(content_type)
    if found is None:
        raise BadRequest("The Content-Type of the request is no media type; use application/json")
    return _covers_json(found)


def accepts_json(accept: str | None) -> bool:
    """Return whether an Accept header allows JSON. Malformed media ranges are ignored."""
    if accept is None or not accept.strip():
        return True
    ranges = [found for text in accept.split(",") if (found := _MEDIA_TYPE.fullmatch(text))]
    return not ranges or any(_covers_json(each) and not _is_refused(each) for each in ranges)


def _covers_json(media_range: re.Match[str]) -> bool:
    main_type, subtype = media_range[1].lower(), media_range[2].lower()
    return main_type in ("*", "application") and subtype in ("*", "json")


def _is_refused(media_range: re.Match[str]) -> bool:
    return _ZERO_WEIGHT.search(media_range[3] or "") is not None

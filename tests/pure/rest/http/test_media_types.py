"""Which Content-Type and Accept headers match JSON."""

from __future__ import annotations

import pytest

from sparkmirror.errors import BadRequest
from sparkmirror.rest.http.media_types import accepts_json, consumes_json


@pytest.mark.parametrize(
    ("content_type", "readable"),
    [
        (None, True),
        ("application/json", True),
        ("Application/JSON; charset=utf-8", True),
        ("application/*", True),
        ("*/*", True),
        ("text/plain", False),
        ("application/xml", False),
        ("application/vnd.api+json", False),
        ("application/x-www-form-urlencoded", False),
    ],
)
def test_a_body_is_read_if_its_content_type_is_json(
    content_type: str | None, readable: bool
) -> None:
    assert consumes_json(content_type) is readable


@pytest.mark.parametrize("content_type", ["json", "", "application", "application/", "a/b c"])
def test_a_malformed_content_type_is_refused(content_type: str) -> None:
    with pytest.raises(BadRequest, match="use application/json"):
        consumes_json(content_type)


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        (None, True),
        ("", True),
        ("*/*", True),
        ("application/json", True),
        ("application/json;q=0.1", True),
        ("text/html, application/xhtml+xml, */*;q=0.8", True),
        ("text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2", True),
        ("text/plain", False),
        ("text/*", False),
        ("application/json;q=0", False),
        ("application/json; q=0.000, text/plain", False),
    ],
)
def test_json_is_sent_if_accept_allows_it(accept: str | None, wanted: bool) -> None:
    assert accepts_json(accept) is wanted

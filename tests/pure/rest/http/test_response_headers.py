"""Headers that the operator adds to every response."""

from __future__ import annotations

import pytest

from sparkmirror.errors import ConfigError
from sparkmirror.rest.http.response_headers import ResponseHeaderRules


def headers(text: str) -> list[tuple[str, str]]:
    return list(ResponseHeaderRules.parse(text, lambda: 1_000_000_000.0).headers())


def test_set_replaces_and_add_adds() -> None:
    assert headers("add X: 1, add X: 2") == [("X", "1"), ("X", "2")]
    assert headers("add X: 1, add Y: 2, set x: 3") == [("Y", "2"), ("x", "3")]


def test_a_rule_with_a_comma_is_quoted() -> None:
    rules = 'set Cache-Control:no-cache, "add Vary: a, b", set X-Frame-Options: DENY'
    assert headers(rules) == [
        ("Cache-Control", "no-cache"),
        ("Vary", "a, b"),
        ("X-Frame-Options", "DENY"),
    ]


def test_a_date_is_counted_from_now() -> None:
    assert headers("setDate Expires: 60000, addDate Last-Modified: -1000") == [
        ("Expires", "Sun, 09 Sep 2001 01:47:40 GMT"),
        ("Last-Modified", "Sun, 09 Sep 2001 01:46:39 GMT"),
    ]


def test_without_rules_there_are_no_headers() -> None:
    assert headers("") == headers(" , ") == []


@pytest.mark.parametrize(
    "rule",
    [
        "set",
        "put X: 1",
        "set X",
        "set X Y: 1",
        "setDate X: soon",
        "set X: a\x00b",
        "set ü: x",
        "set X: €",
    ],
)
def test_a_malformed_rule_is_refused(rule: str) -> None:
    with pytest.raises(ConfigError, match="response.http.headers.config"):
        headers(rule)

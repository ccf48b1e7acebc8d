"""A path is split first, then its segments are decoded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.errors import BadRequest
from sparkmirror.rest.http.path import quote_segment, split_path

NAMES = st.text(st.characters(codec="utf-8"), min_size=1)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/", ()),
        ("/connectors", ("connectors",)),
        ("/connectors/", ("connectors",)),
        ("/connectors/a%2Fb/status", ("connectors", "a/b", "status")),
        ("/connectors/a%252Fb", ("connectors", "a%2Fb")),
        ("/connectors/a->b", ("connectors", "a->b")),
        ("/connectors/a+b", ("connectors", "a+b")),
        ("/connectors/a%20b", ("connectors", "a b")),
        ("/connectors/%C3%BC", ("connectors", "ü")),
        ("/connectors/../status", ("connectors", "..", "status")),
        ("/connectors/.", ("connectors", ".")),
        ("/connectors/a;b=c/status", ("connectors", "a", "status")),
        ("/connectors/a%3Bb", ("connectors", "a;b")),
        ("http://host:8083/connectors/x", ("connectors", "x")),
        ("http://host:8083", ()),
    ],
)
def test_a_path_is_split_into_decoded_segments(path: str, found: tuple[str, ...]) -> None:
    assert split_path(path) == found


@pytest.mark.parametrize(
    "path", ["//", "/connectors//status", "/connectors//", "*", "/a%zz", "/a%", "/a%2", "/%ff"]
)
def test_a_malformed_or_ambiguous_path_is_refused(path: str) -> None:
    with pytest.raises(BadRequest):
        split_path(path)


@given(names=st.lists(NAMES, min_size=1, max_size=4))
def test_split_path_decodes_a_quoted_name(names: list[str]) -> None:
    assert split_path("/" + "/".join(map(quote_segment, names))) == tuple(names)

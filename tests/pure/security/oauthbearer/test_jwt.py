"""Tokens of any content are read without an error."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.security.oauthbearer.jwt import (
    encode_part,
    read_claims,
    read_expiry,
    unsigned_token,
)

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=5,
)


@given(st.text() | st.builds("{}.{}.{}".format, st.text(), st.text(), st.text()))
def test_a_text_that_is_no_token_has_no_claims(text: str) -> None:
    assert isinstance(read_claims(text), dict)
    assert read_expiry(text) is None or isinstance(read_expiry(text), float)


@given(JSON_VALUES)
def test_any_json_may_be_the_claims(value: object) -> None:
    token = f"a.{encode_part(json.dumps(value).encode())}.c"
    assert isinstance(read_claims(token), dict)
    assert isinstance(read_claims(unsigned_token({"exp": value})), dict)


def test_the_expiry_is_a_number() -> None:
    assert read_expiry(unsigned_token({"exp": 5})) == 5.0
    assert read_expiry(unsigned_token({"exp": 5.5})) == 5.5
    values: list[object] = ["5", True, None, 10**400, []]
    for value in values:
        assert read_expiry(unsigned_token({"exp": value})) is None
    assert read_expiry("opaque") is None

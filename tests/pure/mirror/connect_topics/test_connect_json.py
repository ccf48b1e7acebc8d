"""JSON has the same bytes as Connect's."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.errors import RecordError
from sparkmirror.mirror.connect_topics.connect_json import JsonValue, decode, decode_object, encode

values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"offset": 123}, '{"offset":123}'),
        (["c", {"a": None, "b": True, "d": 1.5}], '["c",{"a":null,"b":true,"d":1.5}]'),
        ("größe €😀\u2028\x7f/", '"größe €😀\u2028\x7f/"'),
        ('"\\', '"\\"\\\\"'),
        ("\b\t\n\f\r", '"\\b\\t\\n\\f\\r"'),
        ("\x00\x1b", '"\\u0000\\u001B"'),
        (1e10, "1.0E10"),
    ],
)
def test_json_is_written_as_connect_writes_it(value: JsonValue, text: str) -> None:
    assert encode(value) == text.encode()


@settings(max_examples=40)
@given(values)
def test_written_json_is_read_back(value: JsonValue) -> None:
    assert decode(encode(value)) == value
    assert json.loads(encode(value)) == value


@pytest.mark.parametrize("data", [b"", b"{", b"NaN", b"\xff", b"{}x", b"[" * 100_000])
def test_invalid_json_is_refused(data: bytes) -> None:
    with pytest.raises(RecordError, match="Not JSON"):
        decode(data)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, float("inf"), "\ud800"])
def test_a_value_without_json_form_is_refused(value: JsonValue) -> None:
    with pytest.raises(RecordError):
        encode(value)


def test_a_value_that_is_not_an_object_is_refused() -> None:
    assert decode_object(b'{"a":1}') == {"a": 1}
    with pytest.raises(RecordError, match="A JSON object was expected, not list"):
        decode_object(b"[]")

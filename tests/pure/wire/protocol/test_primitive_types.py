"""Primitive types, plain and compact."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.wire.protocol import primitive_types


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.binary(max_size=3))
def test_an_unsigned_varint_is_read_back(number: int, before: bytes) -> None:
    data = before + primitive_types.encode_uvarint(number) + b"\xff"
    assert primitive_types.read_uvarint(data, len(before)) == (number, len(data) - 1)


@pytest.mark.parametrize(
    ("number", "written"),
    [(0, "00"), (127, "7f"), (128, "8001"), (300, "ac02"), (2**31 - 1, "ffffffff07")],
)
def test_an_unsigned_varint_is_written_low_bits_first(number: int, written: str) -> None:
    assert primitive_types.encode_uvarint(number).hex() == written


def test_a_varint_without_end_is_refused() -> None:
    with pytest.raises(ValueError, match="does not end"):
        primitive_types.read_uvarint(b"\xff" * 9, 0)


@settings(max_examples=40)
@given(st.none() | st.text(max_size=200))
def test_plain_and_compact_strings_are_read_back(text: str | None) -> None:
    old, new = primitive_types.encode_string(text), primitive_types.encode_compact_string(text)
    assert primitive_types.read_string(memoryview(old), 0) == (text, len(old))
    assert primitive_types.read_compact_string(memoryview(new), 0) == (text, len(new))


def test_a_null_array_is_read_as_empty() -> None:
    assert primitive_types.read_array_length(memoryview(b"\xff\xff\xff\xff"), 0) == (0, 4)
    assert primitive_types.read_compact_array_length(memoryview(b"\x00"), 0) == (0, 1)
    assert primitive_types.read_compact_array_length(memoryview(b"\x03"), 0) == (2, 1)


def test_tagged_fields_are_read_by_tag() -> None:
    data = memoryview(b"\x02\x00\x01a\xe8\x07\x02bcrest")
    tags, at = primitive_types.read_tagged_fields(data, 0)
    assert {tag: bytes(value) for tag, value in tags.items()} == {0: b"a", 1000: b"bc"}
    assert bytes(data[at:]) == b"rest"
    assert primitive_types.read_tagged_fields(memoryview(b"\x00"), 0) == ({}, 1)


def test_a_tagged_field_longer_than_the_response_is_refused() -> None:
    with pytest.raises(ValueError, match="go beyond"):
        primitive_types.read_tagged_fields(memoryview(b"\x01\x00\x09a"), 0)

"""Varints are kafka_python_varint and read as kafka-python does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record import util

from sparkmirror.wire.batch.varint import SMALL_VARINTS, decode, encode, encode_non_negative

_encode = cast("Callable[[int, Any], int]", util.encode_varint)
_decode = cast("Callable[[bytes, int], tuple[int, int]]", util.decode_varint)
NUMBERS = st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-9000, 9000)


def kafka_python_varint(number: int) -> bytes:
    out = bytearray()
    _encode(number, out.append)
    return bytes(out)


@settings(max_examples=40)
@given(NUMBERS)
def test_varints_are_written_and_read_as_another_client_does(number: int) -> None:
    assert encode(number) == kafka_python_varint(number)
    assert decode(b"xy" + encode(number) + b"z", 2) == (number, 2 + len(encode(number)))
    assert _decode(encode(number), 0)[0] == number


def test_the_table_has_the_varints_from_0_to_8191() -> None:
    assert [decode(entry, 0) for entry in SMALL_VARINTS] == [
        (number, 1 if number < 64 else 2) for number in range(8192)
    ]
    assert [encode_non_negative(number) for number in (0, 8191, 8192)] == [
        encode(number) for number in (0, 8191, 8192)
    ]


def test_a_padded_varint_is_read() -> None:
    assert decode(b"\x82\x80\x00", 0) == (1, 3)


@pytest.mark.parametrize(
    "data", [b"", b"\x80", b"\xff" * 10 + b"\x01", b"\xff" * 9 + b"\x02"], ids=len
)
def test_a_varint_that_does_not_end_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="does not end or is too large"):
        decode(data, 0)

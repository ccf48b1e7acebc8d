"""Numbers, texts and literals of Java, as Python values."""

from __future__ import annotations

import math
import struct
from datetime import UTC
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.errors import TransformError
from sparkmirror.transforms.data.hash_map_order import hash_map_order
from sparkmirror.transforms.data.java_numbers import (
    low_bits,
    parse_float,
    parse_integer,
    to_int,
    to_long,
)
from sparkmirror.transforms.data.java_text import decimal_text, float_text, to_java_string
from sparkmirror.transforms.data.java_values import (
    Byte,
    Date,
    Integer,
    Short,
    class_name,
    saturate,
    to_float32,
    widen,
    wrap,
)
from sparkmirror.transforms.data.schema import SchemaType
from sparkmirror.transforms.data.values_parser import parse_string
from sparkmirror.transforms.data.values_text import convert_to_string

INTEGERS = st.integers(-(1 << 80), 1 << 80)
FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(INTEGERS, st.sampled_from([8, 16, 32, 64]))
def test_wrapping_keeps_the_lowest_bits_and_saturating_the_nearest_number(
    number: int, bits: int
) -> None:
    half = 1 << (bits - 1)
    assert (wrap(number, bits) - number) % (1 << bits) == 0
    assert -half <= wrap(number, bits) < half
    assert saturate(number, bits) == min(max(number, -half), half - 1)


@given(INTEGERS, st.integers(-30, 30), st.sampled_from([32, 64]))
def test_the_lowest_bits_of_a_decimal_are_those_of_its_integer(
    unscaled: int, exponent: int, bits: int
) -> None:
    decimal = Decimal(f"{unscaled}E{exponent}")
    assert low_bits(decimal, bits) == wrap(int(decimal), bits)


@given(FINITE)
def test_a_double_is_read_from_its_own_text(number: float) -> None:
    assert parse_float(float_text(number)) == number


@given(st.floats(width=32, allow_nan=False))
def test_a_float_of_32_bits_keeps_its_value(number: float) -> None:
    assert widen(to_float32(number)) == number


@given(FINITE)
def test_a_float_is_the_nearest_number_of_32_bits(number: float) -> None:
    rounded = widen(to_float32(number))
    if math.isinf(rounded):
        with pytest.raises(OverflowError):
            struct.pack("<f", number)
    else:
        assert rounded == struct.unpack("<f", struct.pack("<f", rounded))[0]


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_a_decimal_is_read_from_its_own_text(number: Decimal) -> None:
    assert Decimal(decimal_text(number)) == number


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1e7, "1.0E7"),
        (9_999_999.0, "9999999.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (-0.0, "-0.0"),
        (math.inf, "Infinity"),
        (math.nan, "NaN"),
    ],
)
def test_a_double_has_an_exponent_from_ten_millions_on_and_below_a_thousandth(
    number: float, text: str
) -> None:
    assert float_text(number) == text


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_an_integer_is_read_from_its_own_text(number: int) -> None:
    assert parse_integer(str(number), 64) == number


@pytest.mark.parametrize("text", ["", "+", "1.5", " 1", "1_0", "0x1", "9" * 30])
def test_other_texts_are_no_integers(text: str) -> None:
    with pytest.raises(TransformError) as caught:
        parse_integer(text, 32)
    assert str(caught.value) == f'For input string: "{text}"'


def test_a_decimal_number_saturates_before_it_is_narrowed() -> None:
    assert to_int(1e10) == (1 << 31) - 1
    assert to_long(math.inf) == (1 << 63) - 1
    assert to_long(math.nan) == 0


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_a_literal_number_has_the_smallest_type_that_holds_it(number: int) -> None:
    schema, value = parse_string(str(number), UTC)
    sizes = {8: Byte, 16: Short, 32: Integer, 64: int}
    bits = next(each for each in sizes if wrap(number, each) == number)
    assert type(value) is sizes[bits]
    assert schema is not None
    assert schema.type is SchemaType[f"INT{bits}"]
    assert convert_to_string(value, UTC) == str(number)


@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=1, max_size=5))
def test_a_literal_list_is_written_as_it_was_read(numbers: list[int]) -> None:
    text = f"[{','.join(map(str, numbers))}]"
    schema, value = parse_string(text, UTC)
    assert schema is not None
    assert schema.type is SchemaType.ARRAY
    assert len({type(item) for item in value}) == 1
    assert convert_to_string(value, UTC) == text


@given(st.text(alphabet='[]{},:"\\ a1.-T', max_size=30))
def test_every_text_is_some_literal(text: str) -> None:
    _, value = parse_string(text, UTC)
    convert_to_string(value, UTC)


@pytest.mark.parametrize(
    "text", ["[1,,2]", "[1,2", "[a,b]", "{a:b}", "[1,null]", "TRUE", ".5", "[1 2]"]
)
def test_what_is_no_literal_is_a_text(text: str) -> None:
    schema, value = parse_string(text, UTC)
    assert schema is not None
    assert (schema.type, value) == (SchemaType.STRING, text)


def test_containers_have_the_texts_of_java() -> None:
    value = {"a": [1, 1.0, None, True], "b": Date(0)}
    assert to_java_string(value, UTC) == (
        "{a=[1, 1.0, null, true], b=Thu Jan 01 00:00:00 UTC 1970}"
    )
    assert class_name(value) == "java.util.HashMap"


def test_names_have_the_order_of_a_java_hash_map() -> None:
    names = ["i", "neg", "big", "d", "t", "f", "s", "u", "n", "o", "a", "es", "eo", "ea"]
    listed = ["big", "a", "d", "f", "i", "eo", "n", "es", "o", "neg", "s", "t", "u", "ea"]
    assert hash_map_order(names) == listed

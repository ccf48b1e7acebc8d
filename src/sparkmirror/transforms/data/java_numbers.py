"""Numbers of Java: reading them from text, and converting between their types."""

from __future__ import annotations

import math
import re
import unicodedata
from decimal import Decimal, InvalidOperation
from typing import Final

from sparkmirror.errors import TransformError
from sparkmirror.transforms.data.java_exceptions import data_exception, number_format_exception
from sparkmirror.transforms.data.java_values import ConnectValue, saturate, wrap

_BLANKS: Final = "".join(map(chr, range(0x21)))
_DECIMAL_FLOAT: Final = re.compile(
    r"[+-]?(?:NaN|Infinity|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?)", re.ASCII
)
_HEX_FLOAT: Final = re.compile(
    r"[+-]?0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?\d+[fFdD]?", re.ASCII
)
_BIG_DECIMAL: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_MAX_RANGE_TEXT: Final = 32
"""Bits from which Java reports a number out of range as no number at all."""


def parse_integer(text: str, bits: int) -> int:
    """Read a number as `Byte.parseByte`, `Integer.parseInt` and the like do: any decimal digits.

    Raises NumberFormatException.
    """
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits or any(unicodedata.category(char) != "Nd" for char in digits):
        raise number_format_exception(f'For input string: "{text}"')
    plain = "".join(str(unicodedata.decimal(char)) for char in digits)
    # 25 digits are beyond every type; int() refuses thousands.
    number = int(plain) if len(plain) < 25 else 1 << 80
    number = -number if text[0] == "-" else number
    if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
        if bits < _MAX_RANGE_TEXT and -(1 << 31) <= number < 1 << 31:
            raise number_format_exception(f'Value out of range. Value:"{text}" Radix:10')
        raise number_format_exception(f'For input string: "{text}"')
    return number


def parse_float(text: str) -> float:
    """Read a number as `Double.parseDouble` does. Raises NumberFormatException."""
    trimmed = text.strip(_BLANKS)
    if not trimmed:
        raise number_format_exception("empty String")
    if _HEX_FLOAT.fullmatch(trimmed):
        return _hex_float(trimmed.rstrip("fFdD") if "p" in trimmed.lower() else trimmed)
    if not _DECIMAL_FLOAT.fullmatch(trimmed):
        raise number_format_exception(f'For input string: "{text}"')
    if trimmed.lstrip("+-") in ("NaN", "Infinity"):
        return float(trimmed)
    return float(trimmed.rstrip("fFdD"))


def _hex_float(text: str) -> float:
    try:
        return float.fromhex(text)
    except OverflowError:
        return -math.inf if text.startswith("-") else math.inf


def parse_big_decimal(text: str) -> Decimal:
    """Read a number as `new BigDecimal` does. Raises NumberFormatException."""
    if _BIG_DECIMAL.fullmatch(text):
        try:
            return Decimal(text)
        except InvalidOperation as error:
            raise number_format_exception("Too many nonzero exponent digits.") from error
    for char in text:
        if not (char.isdigit() or char in "+-.eE"):
            raise number_format_exception(
                f"Character {char} is neither a decimal digit number, decimal point, nor "
                '"e" notation exponential mark.'
            )
    raise number_format_exception("Character array is missing \"exponent\" mark 'e' or 'E'.")


def to_long(value: ConnectValue) -> int:
    """The 64 bits of a number, as Java's `Number.longValue`: decimals lose their fraction."""
    if isinstance(value, float):
        return 0 if math.isnan(value) else saturate(_truncated(value), 64)
    return low_bits(value, 64)


def to_int(value: ConnectValue) -> int:
    """The 32 bits of a number, as Java's `Number.intValue`."""
    if isinstance(value, float):
        return 0 if math.isnan(value) else saturate(_truncated(value), 32)
    return low_bits(value, 32)


def low_bits(number: int | Decimal, bits: int) -> int:
    """The lowest bits of a number without its fraction. Large exponents cost nothing."""
    if isinstance(number, Decimal):
        exponent = int(number.as_tuple().exponent)
        # So many zeros at the end of a number are zeros in its bits, too.
        if exponent >= bits or number.adjusted() < 0:
            return 0
    return wrap(int(number), bits)


def _truncated(value: float) -> int:
    return (1 << 70 if value > 0 else -(1 << 70)) if math.isinf(value) else int(value)


def long_from_text(text: str) -> int:
    """The number in a text, as Connect's `Values.convertToLong` reads it: it wraps around."""
    return low_bits(_decimal_from_text(text), 64)


def double_from_text(text: str) -> float:
    """The number in a text, as Connect's `Values.convertToDouble` reads it."""
    return float(_decimal_from_text(text))


def _decimal_from_text(text: str) -> Decimal:
    try:
        return parse_big_decimal(text)
    except TransformError as error:
        raise data_exception(
            f"Unable to convert {text} (class java.lang.String) to a number", error
        ) from error

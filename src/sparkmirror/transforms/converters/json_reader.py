"""JSON as Connect reads it with Jackson.

Leading zeros and text behind the document are accepted; an empty document is null. Not accepted are
NaN, control characters in texts, bytes that are no UTF-8, and more than about a thousand levels.
Jackson also reads UTF-16 and UTF-32; these are refused here.
"""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from typing import Any, Final, NoReturn

from sparkmirror.errors import TransformError
from sparkmirror.transforms.data.java_exceptions import data_exception
from sparkmirror.transforms.data.java_values import wrap

BLANKS: Final = " \t\r\n"
_MAX_LONG: Final = (1 << 63) - 1
_MAX_EXPONENT: Final = (1 << 31) - 1
_STRING_OR_ZEROS: Final = re.compile(r'("(?:[^"\\]|\\.)*")|(?<![\w.+-])(-?)0+(?=\d)', re.DOTALL)


_IDENTIFIER: Final = re.compile(r"[\w$]")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"Non-standard token '{name}'")


def _long(text: str) -> int:
    number = int(text)
    return number if -_MAX_LONG <= number <= _MAX_LONG else wrap(number, 64)


def _double(text: str) -> float:
    number = float(text)
    if number == 0 or math.isinf(number):
        return float(_decimal(text)) + 0.0  # Java's decimals have no negative zero.
    return number


def _decimal(text: str) -> Decimal:
    exponent = text.lower().partition("e")[2]
    if len(exponent) > 9 and abs(int(exponent)) > _MAX_EXPONENT:
        raise ValueError(f"Exponent of {text} is too large")
    return Decimal(text)


_PLAIN: Final = json.JSONDecoder(
    parse_constant=_refuse_constant, parse_int=_long, parse_float=_double
)
_EXACT: Final = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_decimal)


def read_json(data: bytes) -> Any:
    """The document: integers are of 64 bits, decimals are floats. Raises DataException."""
    return _read(data, _PLAIN)


def read_exact_json(data: bytes) -> Any:
    """The document with all digits of its numbers. Raises DataException."""
    return _read(data, _EXACT)


def _read(data: bytes, decoder: json.JSONDecoder) -> Any:
    text = decode_text(data)
    start = len(text) - len(text.lstrip(BLANKS))
    if start == len(text):
        return None
    try:
        try:
            return _first_value(decoder, text, start)
        except ValueError:
            lenient = _STRING_OR_ZEROS.sub(r"\1\2", text)
            if lenient == text:
                raise
            return _first_value(decoder, lenient, start)
    except (ValueError, RecursionError) as error:
        raise _serialization_error(str(error)) from error


def decode_text(data: bytes) -> str:
    """The text of a document, without a byte order mark. Raises DataException."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _serialization_error(str(error)) from error


def read_exact_value(text: str, start: int) -> tuple[Any, int] | None:
    """The value at a position, and the position behind it; None if there is no valid one."""
    try:
        return _EXACT.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None


def _first_value(decoder: json.JSONDecoder, text: str, start: int) -> Any:
    value, end = decoder.raw_decode(text, start)
    if end < len(text) and not isinstance(value, dict | list | str):
        is_literal = value is None or isinstance(value, bool)
        if _IDENTIFIER.match(text[end]) if is_literal else text[end] not in BLANKS:
            raise ValueError(f"Unexpected character '{text[end]}' behind the document")
    return value


def _serialization_error(message: str) -> TransformError:
    cause = TransformError("org.apache.kafka.common.errors.SerializationException", message)
    return data_exception(
        "Converting byte[] to Kafka Connect data failed due to serialization error: ", cause
    )

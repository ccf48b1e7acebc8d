"""JSON as Connect reads it with Jackson.

Leading zeros and text behind the document are accepted; an empty document is null. Not accepted are
NaN, control characters in texts, bytes that are no UTF-8, and more than about a thousand levels.
Jackson also reads UTF-16 and UTF-32; these are refused here.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any, Final, NoReturn

from sparkmirror.errors import TransformError
from sparkmirror.transforms.data.java_exceptions import data_exception
from sparkmirror.transforms.data.java_values import wrap

_BLANKS: Final = " \t\r\n"
_UNUSUAL_NUMBER: Final = re.compile(rb"-0|\d{19}|[eE][+-]?\d{10}")
"""What may be a negative zero, a number of more than 64 bits, or an exponent of more than 32."""
_MAX_EXPONENT: Final = (1 << 31) - 1
_STRING_OR_ZEROS: Final = re.compile(r'("(?:[^"\\]|\\.)*")|(?<![\w.+-])(-?)0+(?=\d)', re.DOTALL)


_IDENTIFIER: Final = re.compile(r"[\w$]")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"Non-standard token '{name}'")


def _decimal(text: str) -> Decimal:
    exponent = text.lower().partition("e")[2]
    if len(exponent) > 9 and abs(int(exponent)) > _MAX_EXPONENT:
        raise ValueError(f"Exponent of {text} is too large")
    return Decimal(text)


_PLAIN: Final = json.JSONDecoder(parse_constant=_refuse_constant)
_UNUSUAL: Final = json.JSONDecoder(
    parse_constant=_refuse_constant,
    parse_int=lambda text: wrap(int(text), 64),
    parse_float=lambda text: float(_decimal(text)) + 0.0,
)
_EXACT: Final = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_decimal)


def read_json(data: bytes) -> Any:
    """The document: integers are of 64 bits, decimals are floats. Raises DataException."""
    return _read(data, _UNUSUAL if _UNUSUAL_NUMBER.search(data) else _PLAIN)


def read_exact_json(data: bytes) -> Any:
    """The document with all digits of its numbers. Raises DataException."""
    return _read(data, _EXACT)


def _read(data: bytes, decoder: json.JSONDecoder) -> Any:
    try:
        text = data.decode("utf-8-sig")
        start = len(text) - len(text.lstrip(_BLANKS))
        if start == len(text):
            return None
        try:
            return _first_value(decoder, text, start)
        except ValueError:
            lenient = _STRING_OR_ZEROS.sub(r"\1\2", text)
            if lenient == text:
                raise
            return _first_value(decoder, lenient, start)
    except (ValueError, RecursionError) as error:
        raise _serialization_error(str(error)) from error


def _first_value(decoder: json.JSONDecoder, text: str, start: int) -> Any:
    value, end = decoder.raw_decode(text, start)
    if end < len(text) and not isinstance(value, dict | list | str):
        is_literal = value is None or isinstance(value, bool)
        if _IDENTIFIER.match(text[end]) if is_literal else text[end] not in _BLANKS:
            raise ValueError(f"Unexpected character '{text[end]}' behind the document")
    return value


def _serialization_error(message: str) -> TransformError:
    cause = TransformError("org.apache.kafka.common.errors.SerializationException", message)
    return data_exception(
        "Converting byte[] to Kafka Connect data failed due to serialization error: ", cause
    )

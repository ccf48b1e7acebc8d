"""The nine types of values: parsing a text, and formatting a value.

Parsing follows Kafka's rules (trimming, numbers, lists) and reports errors in Kafka's words. Text
is parsed as in Java, not as in Python: `1_000` and ` inf` are no numbers, `1d` is one, and trimming
removes all characters up to the blank (U+0020), not Unicode's white space.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from enum import Enum
from typing import TypeAlias

from sparkmirror.config.secrets.password import Password
from sparkmirror.errors import ConfigError

ParsedValue: TypeAlias = bool | int | float | str | tuple[str, ...] | Password | None
"""A CLASS is held as its full name, a LIST as a tuple, an absent value as None."""

Props: TypeAlias = Mapping[str, str | None]
"""The text of each key. None stands for JSON's null."""

ClassResolver: TypeAlias = Callable[[str], str | None]
"""Full name of the class that a text names, or None if there is no such class."""


class Type(Enum):
    """The nine types a key can have."""

    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    INT = "INT"
    SHORT = "SHORT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    LIST = "LIST"
    CLASS = "CLASS"
    PASSWORD = "PASSWORD"  # noqa: S105  the name of a type


_BLANKS = "".join(map(chr, range(0x21)))
_COMMA = re.compile(r"\s*,\s*", re.ASCII)
# At most 19 digits after the leading zeros hold any 64-bit number; int() refuses thousands.
_INTEGER = re.compile(r"([+-]?)(?=\d)0*+(\d{0,19})")
_DOUBLE = re.compile(
    r"(?P<sign>[+-]?)(?:(?P<word>NaN|Infinity)|"
    r"(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[fFdD]?)",
    re.ASCII,
)
_BITS = {Type.SHORT: 16, Type.INT: 32, Type.LONG: 64}


def trim(text: str) -> str:
    """The text without the characters that Java's `String.trim` removes."""
    return text.strip(_BLANKS)


def invalid_value_message(name: str, value: ParsedValue, why: str) -> str:
    """Kafka's error message for an invalid value."""
    return f"Invalid value {message_text(value)} for configuration {name}: {why}"


def message_text(value: ParsedValue) -> str:
    """A value as Kafka's messages show it. A secret is hidden."""
    if value is None:
        return "null"
    if isinstance(value, tuple):
        return f"[{', '.join(value)}]"
    return convert_to_string(value) or ""


def convert_to_string(value: ParsedValue) -> str | None:
    """A value as text that parses to the same value. A secret is hidden."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case float():
            return _double_text(value)
        case tuple():
            return ",".join(value)
        case _:
            return str(value)


def parse_type(
    name: str, text: str | None, value_type: Type, classes: ClassResolver
) -> ParsedValue:
    """Parse a text as a value of the type. Raises ConfigError in Kafka's words."""
    if text is None:
        return None
    trimmed = trim(text)
    match value_type:
        case Type.BOOLEAN:
            return _parse_boolean(name, text, trimmed)
        case Type.STRING:
            return trimmed
        case Type.PASSWORD:
            return Password(trimmed)
        case Type.LIST:
            return split_list(trimmed)
        case Type.DOUBLE:
            return _parse_double(name, text, trimmed)
        case Type.CLASS:
            return _require_class(name, text, classes(trimmed) if trimmed else None)
        case Type.SHORT | Type.INT | Type.LONG:
            return _parse_integer(name, text, trimmed, value_type)


def split_list(text: str) -> tuple[str, ...]:
    """The items of a list, empty ones included: a validator refuses those."""
    trimmed = trim(text)
    return tuple(_COMMA.split(trimmed)) if trimmed else ()


def _parse_boolean(name: str, text: str, trimmed: str) -> bool:
    lower = trimmed.lower()
    if lower not in ("true", "false"):
        raise ConfigError.of(
            name, invalid_value_message(name, text, "Expected value to be either true or false")
        )
    return lower == "true"


def _parse_integer(name: str, text: str, trimmed: str, value_type: Type) -> int:
    limit = 1 << (_BITS[value_type] - 1)
    match = _INTEGER.fullmatch(trimmed)
    number = int(match[1] + (match[2] or "0")) if match else limit
    if not -limit <= number < limit:
        raise ConfigError.of(
            name, invalid_value_message(name, text, f"Not a number of type {value_type.value}")
        )
    return number


def _parse_double(name: str, text: str, trimmed: str) -> float:
    match = _DOUBLE.fullmatch(trimmed)
    if not match:
        raise ConfigError.of(name, invalid_value_message(name, text, "Not a number of type DOUBLE"))
    size = match["word"] or match["number"]
    return float(match["sign"] + size)


def _require_class(name: str, text: str, full_name: str | None) -> str:
    if full_name is None:
        raise ConfigError.of(
            name, invalid_value_message(name, text, f"Class {text} could not be found.")
        )
    return full_name


def _double_text(value: float) -> str:
    """A number as Java formats it: `1.0E7` from ten million on and below a thousandth."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits))
    mantissa = text.rstrip("0")
    scale = len(text) - 1 + int(exponent)
    return f"{'-' * sign}{mantissa[0]}.{mantissa[1:] or '0'}E{scale}"

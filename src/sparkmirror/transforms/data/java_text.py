"""Java's texts of values: `toString` of numbers, dates, containers and all others."""

from __future__ import annotations

import math
from datetime import tzinfo
from decimal import Decimal

from sparkmirror.transforms.data.java_values import (
    Byte,
    ConnectValue,
    Date,
    Integer,
    Short,
)
from sparkmirror.transforms.data.struct import Struct
from sparkmirror.transforms.dates.simple_date_format import SimpleDateFormat

_DATE_PATTERN = "EEE MMM dd HH:mm:ss zzz yyyy"


def to_java_string(value: ConnectValue, zone: tzinfo) -> str:
    """The text that Java's `toString` makes of a value; dates are in the time zone."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case Byte() | Short() | Integer() | int():
            return int.__repr__(value)
        case float():
            return float_text(value)
        case str():
            return value
        case bytes():
            return f"[B@{id(value) & 0xFFFFFFFF:x}"
        case Date():
            return SimpleDateFormat(_DATE_PATTERN, zone).format(value.time_ms)
        case Decimal():
            return decimal_text(value)
        case _:
            return _container_text(value, zone)


def _container_text(value: ConnectValue, zone: tzinfo) -> str:
    match value:
        case list():
            return f"[{', '.join(to_java_string(item, zone) for item in value)}]"
        case dict():
            pairs = (
                f"{to_java_string(key, zone)}={to_java_string(item, zone)}"
                for key, item in value.items()
            )
            return f"{{{', '.join(pairs)}}}"
        case Struct():
            fields = (
                f"{field.name}={to_java_string(item, zone)}"
                for field, item in value.entries()
                if item is not None
            )
            return f"Struct{{{','.join(fields)}}}"
    return str(value)


def float_text(number: float) -> str:
    """The text of a Float or a Double: the shortest that is read back as the same number."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    shortest = float.__repr__(number)
    if number == 0:
        return "-0.0" if math.copysign(1, number) < 0 else "0.0"
    sign, digits, exponent = Decimal(shortest).as_tuple()
    text = "".join(map(str, digits)).rstrip("0") or "0"
    scale = len(digits) - 1 + int(exponent)
    if -3 <= scale < 7:
        plain = f"{Decimal(shortest):f}".lstrip("-")
        return f"{'-' * sign}{plain if '.' in plain else plain + '.0'}"
    return f"{'-' * sign}{text[0]}.{text[1:] or '0'}E{scale}"


def decimal_text(number: Decimal) -> str:
    """The text of a BigDecimal: with an exponent if the scale is negative or the number tiny."""
    sign, digits, exponent = number.as_tuple()
    text = "".join(map(str, digits))
    scale = -int(exponent)
    adjusted = len(text) - 1 - scale
    prefix = "-" if sign and any(digits) else ""
    if scale >= 0 and adjusted >= -6:
        if not scale:
            return prefix + text
        padded = text.rjust(scale + 1, "0")
        return f"{prefix}{padded[:-scale]}.{padded[-scale:]}"
    mantissa = f"{text[0]}.{text[1:]}" if len(text) > 1 else text
    return f"{prefix}{mantissa}E{adjusted:+d}"

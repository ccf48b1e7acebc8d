"""Connect's data as Python values, one Python type for each Java class.

    Boolean bool          String    str           List    list
    Byte    Byte (int)    byte[]    bytes         Map     dict
    Short   Short (int)   Date      Date          Struct  struct.Struct
    Integer Integer (int) BigDecimal Decimal      null    None
    Long    int           Double    float         Float   Float (float)

JSON without schemas has only Longs and Doubles, so that plain ints and floats are these.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, TypeAlias

ConnectValue: TypeAlias = Any
"""A value of one of the types above."""


class Byte(int):
    """Java's Byte."""

    __slots__ = ()


class Short(int):
    """Java's Short."""

    __slots__ = ()


class Integer(int):
    """Java's Integer."""

    __slots__ = ()


class Float(float):
    """Java's Float, made by `to_float32`: the shortest decimal of a number of 32 bits."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, order=True)
class Date:
    """java.util.Date: milliseconds since 1970, in UTC."""

    time_ms: int


_CLASS_NAMES: Final[dict[type[Any], str]] = {
    bool: "java.lang.Boolean",
    Byte: "java.lang.Byte",
    Short: "java.lang.Short",
    Integer: "java.lang.Integer",
    int: "java.lang.Long",
    Float: "java.lang.Float",
    float: "java.lang.Double",
    str: "java.lang.String",
    bytes: "[B",
    Date: "java.util.Date",
    Decimal: "java.math.BigDecimal",
    list: "java.util.ArrayList",
    dict: "java.util.HashMap",
}


def class_name(value: ConnectValue) -> str:
    """The name of the Java class of a value that is not null."""
    found = _CLASS_NAMES.get(type(value))
    return found or f"org.apache.kafka.connect.data.{type(value).__name__}"


def null_safe_class_name(value: ConnectValue) -> str:
    """The name of the Java class of a value; `null` for null."""
    return "null" if value is None else class_name(value)


def wrap(number: int, bits: int) -> int:
    """The lowest bits of a number, with the sign in the highest of them, as Java narrows."""
    half = 1 << (bits - 1)
    return ((number + half) & ((1 << bits) - 1)) - half


def saturate(number: int, bits: int) -> int:
    """The nearest number of so many bits, as Java converts decimals and times."""
    half = 1 << (bits - 1)
    return max(-half, min(half - 1, number))


def to_float32(number: float) -> Float:
    """The nearest number of 32 bits, written with as few digits as Java writes; or Infinity."""
    rounded = _round_to_32_bits(number)
    if rounded != rounded or rounded in (_INFINITY, -_INFINITY, 0.0):
        return Float(rounded)
    for precision in range(1, 10):
        shortest = float(f"{rounded:.{precision}g}")
        if _round_to_32_bits(shortest) == rounded:
            return Float(shortest)
    return Float(rounded)


def widen(number: Float) -> float:
    """The Double that is exactly the Float: 0.1 becomes 0.10000000149011612."""
    return _round_to_32_bits(float(number))


def _round_to_32_bits(number: float) -> float:
    if number != number or abs(number) <= FLOAT_MAX or number in (_INFINITY, -_INFINITY):
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    # Less than half a unit above the largest number is rounded down to it.
    if abs(number) < FLOAT_MAX + 2.0**103:
        return FLOAT_MAX if number > 0 else -FLOAT_MAX
    return _INFINITY if number > 0 else -_INFINITY


_INFINITY: Final = float("inf")
FLOAT_MAX: Final = (2 - 2.0**-23) * 2.0**127

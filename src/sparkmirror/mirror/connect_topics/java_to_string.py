"""The text that Java's `toString` gives for the values of a JSON object."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

_POSITIONAL_FROM, _POSITIONAL_BELOW = 1e-3, 1e7
"""Java writes numbers outside of these with an exponent."""


def java_to_string(value: object) -> str:
    """Return the text of a value in a Java message: `{cluster=A, partition=0}`, `null`, `true`."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return double_to_string(value)
    if isinstance(value, Mapping):
        return (
            "{"
            + ", ".join(f"{java_to_string(k)}={java_to_string(v)}" for k, v in value.items())
            + "}"
        )
    return str(value)


def double_to_string(number: float) -> str:
    """Return the text of `Double.toString` for a finite double: `0.5`, `1.0E10`, `1.0E-5`."""
    if number == 0 or _POSITIONAL_FROM <= abs(number) < _POSITIONAL_BELOW:
        return repr(number)
    shortest = Decimal(repr(number))
    digits = "".join(map(str, shortest.as_tuple().digits)).rstrip("0")
    sign = "-" if number < 0 else ""
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{shortest.adjusted()}"

"""Formats counts, sizes, rates and durations as text."""

from __future__ import annotations

_THOUSAND = 1000
_SIZES = ("B", "kB", "MB", "GB", "TB", "PB")
_COUNTS = ("", "k", "M", "G")
_MINUTE_S = 60
_HOUR_S = 3600
_DAY_S = 86400

UNKNOWN = "?"
"""The text of a number that is not known now."""


def count(number: int | None) -> str:
    """Format a number in full: 1,234,567; "?" for an unknown one."""
    return UNKNOWN if number is None else f"{number:,}"


def count_with_noun(number: int | None, noun: str) -> str:
    """Format a number with its noun: 1 topic, 2 topics, ? topics."""
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def size(number: float) -> str:
    """Format a number of bytes: 1.2 MB."""
    shown, unit = _scaled(number, _SIZES)
    return f"{shown} {unit}"


def per_second(number: float) -> str:
    """Format a rate of records: 1.2k/s."""
    shown, unit = _scaled(number, _COUNTS)
    return f"{shown}{unit}/s"


def size_per_second(number: float) -> str:
    """Format a rate of bytes: 1.2 MB/s."""
    return f"{size(number)}/s"


def duration(seconds: float) -> str:
    """Format a duration: 4.2 s, 3m 12s, 2h 05m, 3d 04h."""
    if seconds < _MINUTE_S:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < _HOUR_S:
        return f"{whole // _MINUTE_S}m {whole % _MINUTE_S:02}s"
    if whole < _DAY_S:
        return f"{whole // _HOUR_S}h {whole % _HOUR_S // _MINUTE_S:02}m"
    return f"{whole // _DAY_S}d {whole % _DAY_S // _HOUR_S:02}h"


def _scaled(number: float, units: tuple[str, ...]) -> tuple[str, str]:
    """Return the number with at most three digits before the point, and its unit."""
    if round(number) < _THOUSAND:
        return f"{number:.0f}", units[0]
    for unit in units[1:-1]:
        number /= _THOUSAND
        if round(number, 1) < _THOUSAND:
            return f"{number:.1f}", unit
    return f"{number / _THOUSAND:.1f}", units[-1]

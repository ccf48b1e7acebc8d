"""The time that fields of a date name, as Java's lenient calendar resolves them.

Fields have the letters of SimpleDateFormat. Values beyond their range carry over. If fields
contradict each other, the latest ones win.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo

from sparkmirror.transforms.dates.gregorian_calendar import (
    MS_PER_DAY,
    day_number,
    to_utc_ms,
    weekday_of,
)


def resolve_date_fields(fields: Mapping[str, int], zone: tzinfo) -> int:
    """The time of the fields, which are in the order in which they were set."""
    local_ms = _day(fields) * MS_PER_DAY + _ms_of_day(fields)
    return local_ms - fields["Z"] if "Z" in fields else to_utc_ms(zone, local_ms)


def _day(fields: Mapping[str, int]) -> int:
    year = fields.get("y", 1970)
    if fields.get("G") == 0:
        year = 1 - year
    order = {letter: index for index, letter in enumerate(fields, start=1)}
    if order.get("Y", 0) > order.get("y", 0):
        return _day_in_week(day_number(fields["Y"], 1, 1), fields.get("w", 1), fields.get("E", 0))
    match _latest_day_field(order):
        case "D":
            return day_number(year, 1, 1) + fields["D"] - 1
        case "w":
            return _day_in_week(day_number(year, 1, 1), fields["w"], fields.get("E", 0))
        case "W":
            first = day_number(year, fields.get("M", 1), 1)
            return _day_in_week(first, fields["W"], fields.get("E", 0))
        case "F":
            first = day_number(year, fields.get("M", 1), 1)
            days = (fields.get("E", 0) - weekday_of(first)) % 7
            return first + days + 7 * (fields.get("F", 1) - 1)
        case _:
            return day_number(year, fields.get("M", 1), fields.get("d", 1))


def _latest_day_field(order: Mapping[str, int]) -> str:
    """The field that decides the day: that of the month if nothing else was set."""
    weekday = order.get("E", 0)
    complete = {"d": order.get("d", 0), "D": order.get("D", 0)} | {
        letter: max(order[letter], weekday) if letter in order and weekday else 0
        for letter in ("W", "F", "w")
    }
    # A number of a week, or a weekday, counts alone only if no day is complete.
    alone = {
        "W": order.get("W", 0),
        "F": max(order.get("F", 0), weekday),
        "w": order.get("w", 0),
    }
    for stamps in (complete, alone):
        latest = max(stamps, key=lambda letter: stamps[letter])
        if stamps[latest]:
            return latest
    return "d"


def _day_in_week(first: int, week: int, weekday: int) -> int:
    """The weekday in a week. Week 1 is that of the first day; weeks begin on Sunday."""
    return first - weekday_of(first) + 7 * (week - 1) + weekday


def _ms_of_day(fields: Mapping[str, int]) -> int:
    order = list(fields)
    has_half = "K" in fields and "a" in fields
    by_half = "H" not in fields or (
        has_half and max(order.index("K"), order.index("a")) > order.index("H")
    )
    hours = fields.get("K", 0) + 12 * fields.get("a", 0) if by_half else fields["H"]
    minutes = hours * 60 + fields.get("m", 0)
    return (minutes * 60 + fields.get("s", 0)) * 1000 + fields.get("S", 0)

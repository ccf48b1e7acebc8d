"""Java's SimpleDateFormat: a pattern that formats and parses times, for the locale en_US."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, tzinfo
from typing import Final, NamedTuple

from sparkmirror.transforms.dates.date_names import AM_PM, ERAS, MONTHS, WEEKDAYS, short
from sparkmirror.transforms.dates.date_parser import parse_date
from sparkmirror.transforms.dates.date_pattern import LiteralText, PatternField, parse_pattern
from sparkmirror.transforms.dates.gregorian_calendar import (
    MS_PER_DAY,
    CalendarDay,
    calendar_day,
    offset_ms,
    zone_name,
)

_MS_PER_UNIT: Final = {"S": 1, "s": 1000, "m": 60_000, "H": 3_600_000}
_UNIT_OF: Final = {"S": "S", "s": "s", "m": "m", **dict.fromkeys("HkKha", "H")}


class SimpleDateFormat:
    """A compiled pattern in a time zone. Raises IllegalArgumentException for a bad pattern.

    `now_ms` decides the century of years with two digits: 80 years back, 20 ahead.
    """

    __slots__ = ("_elements", "_formatters", "now_ms", "pattern", "zone")

    def __init__(self, pattern: str, zone: tzinfo = UTC, now_ms: int = 0) -> None:
        self.pattern = pattern
        self.zone = zone
        self.now_ms = now_ms
        self._elements = parse_pattern(pattern)
        self._formatters = tuple(_formatter(element, zone) for element in self._elements)

    def format(self, time_ms: int) -> str:
        """The text of a time."""
        local_ms = time_ms + offset_ms(self.zone, time_ms)
        epoch_day, ms_of_day = divmod(local_ms, MS_PER_DAY)
        moment = _Moment(calendar_day(epoch_day), ms_of_day, time_ms)
        return "".join(part if isinstance(part, str) else part(moment) for part in self._formatters)

    def parse(self, text: str) -> int:
        """The time that a text names. Ignores what follows it. Raises ParseException."""
        return parse_date(self._elements, text, self.zone, self.now_ms)

    def smallest_unit_ms(self) -> int:
        """The length of the smallest unit in the text: within it, in UTC, the text is the same."""
        letters = [each.letter for each in self._elements if isinstance(each, PatternField)]
        units = [_MS_PER_UNIT[_UNIT_OF[one]] for one in letters if one in _UNIT_OF]
        return min(units, default=MS_PER_DAY)


class _Moment(NamedTuple):
    """A time: its day and its milliseconds of the day in the zone, and itself in UTC."""

    day: CalendarDay
    ms: int
    time_ms: int


_Formatter = Callable[[_Moment], str]


def _formatter(element: PatternField | LiteralText, zone: tzinfo) -> _Formatter | str:
    """The formatter of a letter; literal text is its own."""
    if isinstance(element, LiteralText):
        return element.text
    letter, count = element.letter, element.count
    if letter in _NUMBERS:
        number = _NUMBERS[letter]
        return lambda moment: str(number(moment)).zfill(count)
    if letter in "yY":
        return _year_formatter(letter, count)
    if letter in "zZX":
        return _zone_formatter(letter, count, zone)
    if letter in "ML":
        return _month_formatter(count)
    if letter == "E":
        return lambda moment: _name(WEEKDAYS[moment.day.weekday], count)
    if letter == "G":
        return lambda moment: ERAS[moment.day.year > 0]
    return lambda moment: AM_PM[moment.ms >= MS_PER_DAY // 2]


_NUMBERS: Final[dict[str, Callable[[_Moment], int]]] = {
    "d": lambda moment: moment.day.day,
    "D": lambda moment: moment.day.day_of_year,
    "F": lambda moment: (moment.day.day - 1) // 7 + 1,
    "w": lambda moment: moment.day.week_of_year,
    "W": lambda moment: moment.day.week_of_month,
    "u": lambda moment: (moment.day.weekday - 1) % 7 + 1,
    "H": lambda moment: moment.ms // 3_600_000,
    "k": lambda moment: moment.ms // 3_600_000 or 24,
    "K": lambda moment: moment.ms // 3_600_000 % 12,
    "h": lambda moment: moment.ms // 3_600_000 % 12 or 12,
    "m": lambda moment: moment.ms // 60_000 % 60,
    "s": lambda moment: moment.ms // 1000 % 60,
    "S": lambda moment: moment.ms % 1000,
}


def _name(name: str, count: int) -> str:
    return name if count >= 4 else short(name)


def _year_formatter(letter: str, count: int) -> _Formatter:
    def year_text(moment: _Moment) -> str:
        if letter == "Y":  # Weeks have no era: years before Christ are negative.
            year, sign = abs(moment.day.week_year), "-" * (moment.day.week_year < 0)
        else:
            year, sign = moment.day.year if moment.day.year > 0 else 1 - moment.day.year, ""
        return sign + (str(year % 100).zfill(2) if count == 2 else str(year).zfill(count))

    return year_text


def _month_formatter(count: int) -> _Formatter:
    if count >= 3:
        return lambda moment: _name(MONTHS[moment.day.month - 1], count)
    return lambda moment: str(moment.day.month).zfill(count)


def _zone_formatter(letter: str, count: int, zone: tzinfo) -> _Formatter:
    if letter == "z":
        return lambda moment: _zone_name(zone, moment.time_ms, count)

    def offset_text(moment: _Moment) -> str:
        minutes = offset_ms(zone, moment.time_ms) // 60_000
        if letter == "X" and not minutes:
            return "Z"
        hours, rest = divmod(abs(minutes), 60)
        text = f"{'-' if minutes < 0 else '+'}{hours:02}"
        if letter == "X" and count == 1:
            return text
        colon = ":" if letter == "X" and count == 3 else ""
        return f"{text}{colon}{rest:02}"

    return offset_text


def _zone_name(zone: tzinfo, time_ms: int, count: int) -> str:
    name = zone_name(zone, time_ms)
    return "Coordinated Universal Time" if count >= 4 and name == "UTC" else name

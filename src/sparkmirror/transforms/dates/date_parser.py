"""How SimpleDateFormat reads a date: leniently, field by field, and ignoring what follows."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from datetime import tzinfo
from typing import Final

from sparkmirror.transforms.data.java_exceptions import parse_exception
from sparkmirror.transforms.data.java_values import saturate, wrap
from sparkmirror.transforms.dates.date_fields import resolve_date_fields
from sparkmirror.transforms.dates.date_names import (
    AM_PM,
    ERAS,
    MONTHS,
    WEEKDAYS,
    ZONE_HOURS,
    short,
)
from sparkmirror.transforms.dates.date_pattern import LiteralText, PatternField
from sparkmirror.transforms.dates.gregorian_calendar import (
    MS_PER_DAY,
    calendar_day,
    day_number,
)

_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "M": MONTHS,
    "L": MONTHS,
    "E": WEEKDAYS,
    "G": ERAS,
    "a": AM_PM,
}
_NUMERIC_MONTH: Final = 2
_MINUTE_MS: Final = 60_000
_CENTURY_YEARS: Final = 80
_MAX_DIGITS: Final = 25
"""Numbers with more digits are larger than a Long, whatever zeros they begin with."""


def parse_date(
    elements: Sequence[PatternField | LiteralText], text: str, zone: tzinfo, now_ms: int
) -> int:
    """The time that a text names. Raises ParseException."""
    parser = _DateParser(text, now_ms)
    for index, element in enumerate(elements):
        follower = elements[index + 1] if index + 1 < len(elements) else None
        read = (
            parser.read_literal(element.text)
            if isinstance(element, LiteralText)
            else parser.read_field(element, abuts=_is_numeric(follower))
        )
        if not read:
            raise parse_exception(f'Unparseable date: "{text}"')
    time_ms = resolve_date_fields(parser.fields, zone)
    if parser.has_ambiguous_year and time_ms < _century_start_ms(now_ms):
        later = {
            letter: number + 100 if letter in "yY" else number
            for letter, number in parser.fields.items()
        }
        time_ms = resolve_date_fields(later, zone)
    return wrap(time_ms, 64)


def _century_start_ms(now_ms: int) -> int:
    """The time 80 years before now. Years of two digits are those of the century from there on."""
    epoch_day, ms_of_day = divmod(now_ms, MS_PER_DAY)
    today = calendar_day(epoch_day)
    start_day = day_number(today.year - _CENTURY_YEARS, today.month, today.day)
    return start_day * MS_PER_DAY + ms_of_day


def _is_numeric(element: PatternField | LiteralText | None) -> bool:
    """Whether an element is read as a number."""
    if not isinstance(element, PatternField) or element.letter in "zZX":
        return False
    if element.letter in "ML":
        return element.count <= _NUMERIC_MONTH
    return element.letter not in _NAMES


class _DateParser:
    """One pass over one text. Collects the fields by their letters, the latest one last."""

    def __init__(self, text: str, now_ms: int) -> None:
        self._text = text
        self._position = 0
        self._now_ms = now_ms
        self.fields: dict[str, int] = {}
        self.has_ambiguous_year = False

    def read_literal(self, literal: str) -> bool:
        """Read text that stands for itself. Return whether it is there."""
        found = self._text.startswith(literal, self._position)
        self._position += len(literal)
        return found

    def read_field(self, element: PatternField, *, abuts: bool) -> bool:
        """Read one field. Return whether it is there. `abuts`: another field follows at once."""
        start = self._position
        while self._text[self._position : self._position + 1] in (" ", "\t"):
            self._position += 1
        if self._position >= len(self._text):
            return False
        letter, count = element.letter, element.count
        if letter in "zZX":
            return self._read_zone(letter, count)
        if not _is_numeric(element):
            self._position = start  # Java skips blanks before numbers and zones only.
            return self._read_name(letter)
        return self._read_number(letter, count, end=start + count if abuts else None)

    def _read_name(self, letter: str) -> bool:
        rest = self._text[self._position :].lower()
        forms = [
            (form, index)
            for index, name in enumerate(_NAMES[letter])
            for form in (name, short(name))
            if rest.startswith(form.lower())
        ]
        if not forms:
            return False
        form, index = max(forms, key=lambda each: len(each[0]))
        self._position += len(form)
        self._set(letter, index + 1 if letter in "ML" else index)
        return True

    def _read_number(self, letter: str, count: int, *, end: int | None) -> bool:
        """Read a number, up to the position `end` if another number follows there."""
        start = self._position
        if end is None:
            end = len(self._text)
        elif not start < end <= len(self._text):
            return False
        digits_start = start + (self._text[start] == "-")
        position = digits_start
        while position < end and unicodedata.category(self._text[position]) == "Nd":
            position += 1
        if position == digits_start:
            return False
        number = _int_value(self._text[digits_start:position], negative=digits_start > start)
        self._position = position
        if letter in "yY" and count <= 2 and position - start == 2 and digits_start == start:
            number = self._full_year(number)
        self._set(letter, number)
        return True

    def _set(self, letter: str, number: int) -> None:
        """Set a field. Letters with the same field in Java's calendar share one here."""
        field, value = _calendar_field(letter, number)
        self.fields.pop(field, None)  # A field that is set again counts as the latest.
        self.fields[field] = value

    def _full_year(self, two_digits: int) -> int:
        """The year of two digits: in the 100 years from 80 years before now on."""
        start_year = calendar_day(self._now_ms // MS_PER_DAY).year - _CENTURY_YEARS
        wrapped = 100 if two_digits < start_year % 100 else 0
        self.has_ambiguous_year = two_digits == start_year % 100
        return two_digits + start_year // 100 * 100 + wrapped

    def _read_zone(self, letter: str, count: int) -> bool:
        text, start = self._text, self._position
        if letter == "X" and text[start] == "Z":
            return self._set_offset(0, start + 1)
        if text[start] in "+-":
            colon = letter == "X" and count == 3
            return self._read_offset(start, colon=colon, hours_only=letter == "X" and count == 1)
        if letter == "X":
            return False
        if text[start : start + 3].upper() == "GMT" and text[start + 3 : start + 4] in ("+", "-"):
            return self._read_offset(start + 3, colon=True, hours_only=False)
        for name, hours in ZONE_HOURS.items():
            if text[start : start + len(name)].upper() == name:
                return self._set_offset(int(hours * 60), start + len(name))
        return False

    def _read_offset(self, start: int, *, colon: bool, hours_only: bool) -> bool:
        hours, position = self._digits(start + 1)
        minutes = 0
        if not hours_only:
            if colon and self._text[position : position + 1] != ":":
                return False
            minutes, position = self._digits(position + colon)
        if not (0 <= hours < 24 and 0 <= minutes < 60):
            return False
        sign = -1 if self._text[start] == "-" else 1
        return self._set_offset(sign * (hours * 60 + minutes), position)

    def _digits(self, start: int) -> tuple[int, int]:
        """Two digits as a number, -1 if they are not there; and the position behind them."""
        digits = self._text[start : start + 2]
        valid = len(digits) == 2 and digits.isascii() and digits.isdigit()
        return (int(digits) if valid else -1), start + 2

    def _set_offset(self, minutes: int, position: int) -> bool:
        self._set("Z", minutes * _MINUTE_MS)
        self._position = position
        return True


def _int_value(digits: str, *, negative: bool) -> int:
    """The 32 bits of a number: a Long wraps around, a larger one is cut off, as in Java."""
    number = int(digits) if len(digits) <= _MAX_DIGITS else 1 << 64
    signed = -number if negative else number
    return wrap(signed, 32) if wrap(signed, 64) == signed else saturate(signed, 32)


def _calendar_field(letter: str, number: int) -> tuple[str, int]:
    match letter:
        case "L":
            return "M", number
        case "k":
            return "H", 0 if number == 24 else number
        case "h":
            return "K", 0 if number == 12 else number
        case "u":
            return "E", number % 7 if 1 <= number <= 7 else number - 1
        case _:
            return letter, number

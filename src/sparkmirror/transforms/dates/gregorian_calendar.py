"""Java's GregorianCalendar: Julian before 15 October 1582, lenient, weeks from Sunday (en_US).

Months count from 1, years are astronomical (year 0 is 1 BC), days count from 1970-01-01.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

MS_PER_DAY: Final = 86_400_000
_EPOCH_JULIAN_DAY: Final = 2_440_588
_GREGORIAN_CUTOVER: Final = -141_427
"""The day 1582-10-15."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_400_YEARS_MS: Final = 146_097 * MS_PER_DAY
_FIRST_KNOWN_MS: Final = -25_567 * MS_PER_DAY
"""The first day of 1900."""
_LAST_KNOWN_MS: Final = 376_200 * MS_PER_DAY
"""A day of the year 3000; Python knows years up to 9999."""


@dataclass(frozen=True, slots=True)
class CalendarDay:
    """One day. `weekday` counts from Sunday = 0; `week_year` is the year that the week is of."""

    year: int
    month: int
    day: int
    day_of_year: int
    weekday: int
    week_of_year: int
    week_year: int
    week_of_month: int


def calendar_day(epoch_day: int) -> CalendarDay:
    """The day with that number."""
    year, month, day = _year_month_day(epoch_day)
    weekday = weekday_of(epoch_day)
    first_of_year = day_number(year, 1, 1)
    day_of_year = epoch_day - first_of_year + 1
    week_of_year = (day_of_year - 1 + weekday_of(first_of_year)) // 7 + 1
    week_year = year
    # The week of 1 January is the first week of its year, also for the days before it.
    first_of_next_year = day_number(year + 1, 1, 1)
    if epoch_day >= first_of_next_year - weekday_of(first_of_next_year):
        week_of_year, week_year = 1, year + 1
    week_of_month = (day - 1 + (weekday - (day - 1)) % 7) // 7 + 1
    return CalendarDay(
        year, month, day, day_of_year, weekday, week_of_year, week_year, week_of_month
    )


def weekday_of(epoch_day: int) -> int:
    """The weekday of a day, from Sunday = 0."""
    return (epoch_day + 4) % 7


def day_number(year: int, month: int, day: int) -> int:
    """The number of a day. Month and day may be beyond their range: 30 February is in March."""
    years, month_index = divmod(month - 1, 12)
    gregorian = _gregorian_day_number(year + years, month_index + 1) + day - 1
    if gregorian >= _GREGORIAN_CUTOVER:
        return gregorian
    return _julian_day_number(year + years, month_index + 1) + day - 1


def _gregorian_day_number(year: int, month: int) -> int:
    shifted = year + 4800 - (14 - month) // 12
    months = (153 * (month + 12 * ((14 - month) // 12) - 3) + 2) // 5
    leap_days = shifted // 4 - shifted // 100 + shifted // 400
    return 1 + months + 365 * shifted + leap_days - 32_045 - _EPOCH_JULIAN_DAY


def _julian_day_number(year: int, month: int) -> int:
    shifted = year + 4800 - (14 - month) // 12
    months = (153 * (month + 12 * ((14 - month) // 12) - 3) + 2) // 5
    return 1 + months + 365 * shifted + shifted // 4 - 32_083 - _EPOCH_JULIAN_DAY


def _year_month_day(epoch_day: int) -> tuple[int, int, int]:
    julian_day = epoch_day + _EPOCH_JULIAN_DAY
    if epoch_day >= _GREGORIAN_CUTOVER:
        days = julian_day + 32_044
        centuries = (4 * days + 3) // 146_097
        days -= 146_097 * centuries // 4
    else:
        days, centuries = julian_day + 32_082, 0
    years = (4 * days + 3) // 1461
    days -= 1461 * years // 4
    months = (5 * days + 2) // 153
    day = days - (153 * months + 2) // 5 + 1
    return 100 * centuries + years - 4800 + months // 10, months + 3 - 12 * (months // 10), day


def offset_ms(zone: tzinfo, time_ms: int) -> int:
    """How far the clocks of a zone are ahead of UTC at a time; before 1900, of their winters."""
    if zone is UTC:
        return 0
    moment = _in_zone(zone, time_ms)
    offset = moment.utcoffset() or timedelta()
    if time_ms < _FIRST_KNOWN_MS:
        offset -= moment.dst() or timedelta()
    return int(offset.total_seconds() * 1000)


def zone_name(zone: tzinfo, time_ms: int) -> str:
    """The short name of a zone at a time: UTC, JST, EST."""
    return "UTC" if zone is UTC else _in_zone(zone, time_ms).tzname() or ""


def to_utc_ms(zone: tzinfo, local_ms: int) -> int:
    """The time at which the clocks of a zone show `local_ms`."""
    guess = local_ms - offset_ms(zone, local_ms)
    return local_ms - offset_ms(zone, guess)


def _in_zone(zone: tzinfo, time_ms: int) -> datetime:
    """The time in a zone. Before 1900 the zone counts as in 1970; rules repeat every 400 years."""
    known = 0 if time_ms < _FIRST_KNOWN_MS else time_ms
    if known > _LAST_KNOWN_MS:
        known = _LAST_KNOWN_MS - _400_YEARS_MS + (known - _LAST_KNOWN_MS) % _400_YEARS_MS
    return (_EPOCH + timedelta(milliseconds=known)).astimezone(zone)

"""Java's SimpleDateFormat: formats, lenient parsing, and a calendar that was once Julian."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.errors import TransformError
from sparkmirror.transforms.dates.gregorian_calendar import calendar_day, day_number
from sparkmirror.transforms.dates.simple_date_format import SimpleDateFormat

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOW_MS = 1_790_000_000_000
"""In September 2026."""
GREGORIAN_TIMES = st.integers(-12_212_553_600_000, 253_402_300_799_999)
"""From 1583 to 9999."""
FULL_PATTERNS = (
    "yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
    "yyyyMMddHHmmssSSS",
    "EEE, d MMM yyyy HH:mm:ss.SSS Z",
    "D yyyy hh:mm:ss.SSS a",
    "YYYY-'W'ww-u kk:mm:ss.SSS",
    "MMMM d, yyyy KK:mm:ss.SSS a",
    "F EEEE MM yyyy H:m:s.S",
)


@given(GREGORIAN_TIMES)
def test_times_are_formatted_as_python_formats_them(time_ms: int) -> None:
    moment = EPOCH + timedelta(milliseconds=time_ms)
    expected = f"{moment:%Y-%m-%d %j %H:%M:%S}.{moment.microsecond // 1000:03} {moment:%a %b}"
    assert SimpleDateFormat("yyyy-MM-dd DDD HH:mm:ss.SSS EEE MMM").format(time_ms) == expected


@given(GREGORIAN_TIMES, st.sampled_from(FULL_PATTERNS))
def test_a_time_is_parsed_from_its_own_text(time_ms: int, pattern: str) -> None:
    date_format = SimpleDateFormat(pattern)
    assert date_format.parse(date_format.format(time_ms)) == time_ms


@given(st.integers(-10_000_000, 10_000_000))
def test_a_day_has_the_number_of_its_year_month_and_day(number: int) -> None:
    day = calendar_day(number)
    assert day_number(day.year, day.month, day.day) == number
    assert 1 <= day.day_of_year <= 366
    assert 1 <= day.week_of_month <= 6


@given(GREGORIAN_TIMES, st.sampled_from(["yyyy", "yyyy-MM-dd HH", "H:mm", "s", "S", "EEE a"]))
def test_within_the_smallest_unit_the_text_is_the_same(time_ms: int, pattern: str) -> None:
    date_format = SimpleDateFormat(pattern)
    start = time_ms - time_ms % date_format.smallest_unit_ms()
    assert date_format.format(start) == date_format.format(time_ms)


def test_the_day_before_15_october_1582_is_4_october() -> None:
    assert calendar_day(-141_427).day == 15
    assert calendar_day(-141_428).day == 4
    day_before_christ = day_number(1, 1, 1) - 1
    text = SimpleDateFormat("G yyyy-MM-dd").format(day_before_christ * 86_400_000)
    assert text == "BC 0001-12-31"


@pytest.mark.parametrize(
    ("text", "year"),
    [("01/01/46", 2046), ("31/12/46", 1946), ("01/01/47", 1947), ("01/01/2023", 2023)],
)
def test_a_year_of_two_digits_is_within_80_years_before_and_20_after_now(
    text: str, year: int
) -> None:
    parsed = SimpleDateFormat("dd/MM/yy", now_ms=NOW_MS).parse(text)
    assert SimpleDateFormat("yyyy").format(parsed) == str(year)


def test_a_zone_is_that_of_the_format_unless_the_text_names_one() -> None:
    tokyo = ZoneInfo("Asia/Tokyo")
    assert SimpleDateFormat("yyyy-MM-dd", tokyo).parse("1970-01-01") == -9 * 3_600_000
    assert SimpleDateFormat("yyyy-MM-dd Z", tokyo).parse("1970-01-01 +0100") == -3_600_000
    assert SimpleDateFormat("yyyy-MM-dd z", tokyo).parse("1970-01-01 GMT") == 0
    assert SimpleDateFormat("HH:mm XX z", tokyo).format(0) == "09:00 +0900 JST"


@pytest.mark.parametrize("digits", [20, 26, 5000])
def test_a_number_of_very_many_digits_is_cut_off(digits: int) -> None:
    SimpleDateFormat("yyyy").parse("9" * digits)


@pytest.mark.parametrize("pattern", ["Q", "yyyy-bb", "'open", "XXXX"])
def test_a_bad_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(TransformError) as caught:
        SimpleDateFormat(pattern)
    assert caught.value.java_class == "java.lang.IllegalArgumentException"

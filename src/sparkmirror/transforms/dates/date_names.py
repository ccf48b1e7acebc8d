"""The names in dates, in English: months, weekdays, eras, halves of the day, time zones."""

from __future__ import annotations

from typing import Final

MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
WEEKDAYS: Final = (*("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"),)
ERAS: Final = ("BC", "AD")
AM_PM: Final = ("AM", "PM")

ZONE_HOURS: Final = {
    "UTC": 0,
    "GMT": 0,
    "EST": -5,
    "EDT": -4,
    "CST": -6,
    "CDT": -5,
    "MST": -7,
    "MDT": -6,
    "PST": -8,
    "PDT": -7,
    "CET": 1,
    "CEST": 2,
    "EET": 2,
    "EEST": 3,
    "MSK": 3,
    "IST": 5.5,
    "JST": 9,
}
"""Abbreviations of time zones that are read, with their hours ahead of UTC. Java knows more."""


def short(name: str) -> str:
    """The short form of a month or weekday."""
    return name[:3]

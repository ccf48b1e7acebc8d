"""Headers that the operator wants on every answer (`response.http.headers.config`).

    set X-Frame-Options: DENY, add Cache-Control: no-store, "set Vary: a, b", setDate Expires: 5000

`set` replaces what an earlier rule said, `add` stands beside it; a date is so many milliseconds
from now. The config room has checked the form.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import formatdate

from sparkmirror.errors import ConfigError

_KEY = "response.http.headers.config"
_RULE = re.compile(r'(?:[^,"]|"[^"]*"?)+')
_RULE_PARTS = re.compile(r"(set|add|setDate|addDate)\s+([^\s:]+)\s*:\s*(.*)")
_MILLISECONDS = re.compile(r"[+-]?[0-9]{1,18}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseHeaderRule:
    """One header, and whether it replaces others of its name."""

    name: str
    value: str
    replaces: bool
    is_date: bool

    def header_value(self, now_s: float) -> str:
        """What to send."""
        if not self.is_date:
            return self.value
        return formatdate(now_s + int(self.value) / 1000, usegmt=True)


class ResponseHeaderRules:
    """All rules, in the order they were written."""

    def __init__(self, rules: tuple[ResponseHeaderRule, ...], now_s: Callable[[], float]) -> None:
        self._rules = rules
        self._now_s = now_s

    @classmethod
    def parse(cls, text: str, now_s: Callable[[], float]) -> ResponseHeaderRules:
        """Read the rules. ConfigError names the one that is none."""
        rules = (rule.strip().strip('"').strip() for rule in _RULE.findall(text))
        return cls(tuple(_parse_rule(rule) for rule in rules if rule), now_s)

    def headers(self) -> tuple[tuple[str, str], ...]:
        """What to add to an answer given now."""
        now_s = self._now_s()
        shown: list[tuple[str, str]] = []
        for rule in self._rules:
            if rule.replaces:
                shown = [each for each in shown if each[0].lower() != rule.name.lower()]
            shown.append((rule.name, rule.header_value(now_s)))
        return tuple(shown)


def _parse_rule(written: str) -> ResponseHeaderRule:
    found = _RULE_PARTS.fullmatch(written)
    if found is None or not (written.isascii() and written.isprintable()):
        raise ConfigError.of(
            _KEY, f"{_KEY}: '{written}' is no rule of the form '[action] [name]:[value]'"
        )
    action, name, value = found[1], found[2], found[3].strip()
    date = action.endswith("Date")
    if date and not _MILLISECONDS.fullmatch(value):
        raise ConfigError.of(_KEY, f"{_KEY}: '{written}' needs a number of milliseconds")
    return ResponseHeaderRule(
        name=name, value=value, replaces=action.startswith("set"), is_date=date
    )

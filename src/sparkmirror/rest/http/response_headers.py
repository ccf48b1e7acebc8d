"""Headers that the operator adds to every response (`response.http.headers.config`).

    set X-Frame-Options: DENY, add Cache-Control: no-store, "set Vary: a, b", setDate Expires: 5000

`set` replaces earlier headers of the name, `add` does not. A date is in milliseconds from now.
`config` has validated the syntax already.
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
        """Return the value to send."""
        if not self.is_date:
            return self.value
        return formatdate(now_s + int(self.value) / 1000, usegmt=True)


class ResponseHeaderRules:
    """All rules, in the order of the config value."""

    def __init__(self, rules: tuple[ResponseHeaderRule, ...], now_s: Callable[[], float]) -> None:
        self._rules = rules
        self._now_s = now_s

    @classmethod
    def parse(cls, text: str, now_s: Callable[[], float]) -> ResponseHeaderRules:
        """Parse the rules. Raises ConfigError, which names the malformed rule."""
        rules = (rule.strip().strip('"').strip() for rule in _RULE.findall(text))
        return cls(tuple(_parse_rule(rule) for rule in rules if rule), now_s)

    def headers(self) -> tuple[tuple[str, str], ...]:
        """Return the headers of a response that is sent now."""
        now_s = self._now_s()
        headers: list[tuple[str, str]] = []
        for rule in self._rules:
            if rule.replaces:
                headers = [each for each in headers if each[0].lower() != rule.name.lower()]
            headers.append((rule.name, rule.header_value(now_s)))
        return tuple(headers)


def _parse_rule(text: str) -> ResponseHeaderRule:
    found = _RULE_PARTS.fullmatch(text)
    if found is None or not (text.isascii() and text.isprintable()):
        raise ConfigError.of(_KEY, f"{_KEY}: '{text}' is not of the form '[action] [name]:[value]'")
    action, name, value = found[1], found[2], found[3].strip()
    is_date = action.endswith("Date")
    if is_date and not _MILLISECONDS.fullmatch(value):
        raise ConfigError.of(_KEY, f"{_KEY}: '{text}' needs a number of milliseconds")
    return ResponseHeaderRule(
        name=name, value=value, replaces=action.startswith("set"), is_date=is_date
    )

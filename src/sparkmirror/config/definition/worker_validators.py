"""Validators that only a worker's keys need: header rules, algorithms, the group protocol.

Same contract as `validators`; each of these parses a small language.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sparkmirror.config.definition.value_types import ParsedValue, invalid_value_message, trim

HEADER_ACTIONS = ("set", "add", "setDate", "addDate")
_RULE = re.compile(r'(?:[^,"]|"[^"]*"?)+')
_LISTENER = re.compile(
    r"https?://(?:\[[0-9a-f:.%]+\]|[^\[\]/:]*):(?P<port>[0-9]{1,5})/?", re.IGNORECASE
)
_MAX_PORT = 65535

MAC_ALGORITHMS = (
    "HmacMD5",
    "HmacSHA1",
    "HmacSHA224",
    "HmacSHA256",
    "HmacSHA384",
    "HmacSHA512",
    "HmacSHA512/224",
    "HmacSHA512/256",
)
"""The algorithms that Java and Python both have."""


@dataclass(frozen=True, slots=True)
class ResponseHttpHeadersValidator:
    """Rules `[action] [name]:[value]`, comma-separated, in quotes where one contains a comma."""

    description: str = (
        "Comma-separated header rules, where each header rule is of the form "
        "'[action] [header name]:[header value]' and optionally surrounded by double quotes "
        "if any part of a header rule contains a comma"
    )

    def validation_error(self, name: str, value: ParsedValue) -> str | None:
        if not isinstance(value, str) or not trim(value):
            return None
        faults = (_rule_fault(trim(trim(rule).strip('"'))) for rule in _RULE.findall(value))
        return next((fault for fault in faults if fault), None)


def _rule_fault(rule: str) -> str | None:
    action, blank, header = rule.partition(" ")
    if not blank:
        form = "'[action] [header name]:[header value]'"
        return f"Invalid format of header config '{rule}'. Expected: {form}"
    if action not in HEADER_ACTIONS:
        known = ", ".join(HEADER_ACTIONS)
        return f"Invalid header config action: '{action}'. Expected one of [{known}]"
    name, colon, _ = header.partition(":")
    if not colon:
        form = "'[header name]:[header value]'"
        return f"Invalid format of header name and header value pair '{header}'. Expected: {form}"
    if not name or any(char.isspace() for char in trim(name)):
        return f"Invalid header name '{name}'. The '[header name]' cannot contain whitespace"
    return None


@dataclass(frozen=True, slots=True)
class MacAlgorithmValidator:
    """An algorithm for the signature of requests between workers."""

    description: str

    def validation_error(self, name: str, value: ParsedValue) -> str | None:
        return _algorithm_fault(name, value, value)


@dataclass(frozen=True, slots=True)
class MacAlgorithmListValidator:
    """One or more algorithms for the signatures that a worker accepts."""

    description: str

    def validation_error(self, name: str, value: ParsedValue) -> str | None:
        if not isinstance(value, tuple) or not value:
            return invalid_value_message(name, value, "At least one MAC algorithm must be named")
        faults = (_algorithm_fault(name, value, item) for item in value)
        return next((fault for fault in faults if fault), None)


def _algorithm_fault(name: str, value: ParsedValue, item: ParsedValue) -> str | None:
    if isinstance(item, str) and item.lower() in {known.lower() for known in MAC_ALGORITHMS}:
        return None
    known = ", ".join(MAC_ALGORITHMS)
    return invalid_value_message(
        name, value, f"the algorithm '{item}' is not known; use one of: {known}"
    )


@dataclass(frozen=True, slots=True)
class MetricsListenersValidator:
    """Addresses `http://host:port` or `https://host:port`; none is fine."""

    description: str = "List of comma-separated URLs, ex: http://0.0.0.0:9404"

    def validation_error(self, name: str, value: ParsedValue) -> str | None:
        for listener in value if isinstance(value, tuple) else ():
            found = _LISTENER.fullmatch(listener)
            if found is None or int(found["port"]) > _MAX_PORT:
                return invalid_value_message(name, value, "write http://host:port")
        return None


@dataclass(frozen=True, slots=True)
class ConnectProtocolValidator:
    """The protocol by which the workers of a group distribute their work."""

    protocols: tuple[str, ...] = ("eager", "compatible", "sessioned")

    @property
    def description(self) -> str:
        return f"[{', '.join(self.protocols)}]"

    def validation_error(self, name: str, value: ParsedValue) -> str | None:
        if isinstance(value, str) and value.lower() in self.protocols:
            return None
        return invalid_value_message(name, value, "Invalid Connect protocol compatibility")

"""Versions of plug-ins, as Connect's configs require them.

A requirement is `latest`, one version (`4.3.0`: exactly that), or ranges in Maven's notation
(`[4.0,5.0)`, several separated by commas). There is one version of every plug-in here, the Kafka
release whose behaviour is reproduced, so the only question is whether it meets the requirement.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from sparkmirror.config.definition.value_types import ParsedValue, invalid_value_message, trim

PLUGIN_VERSION: Final = "4.3.0"

_RANGE = re.compile(r"([\[(])([^\[\](),]*)(?:(,)([^\[\](),]*))?([\])])")
_RANGES = re.compile(rf"{_RANGE.pattern}(?:,{_RANGE.pattern})*")


def satisfies_requirement(requirement: str, version: str = PLUGIN_VERSION) -> bool:
    """Whether the version satisfies the requirement. No version satisfies a malformed one."""
    text = trim(requirement)
    if text.lower() == "latest":
        return True
    return any(_is_in_range(version, *bounds) for bounds in _RANGE.findall(_as_range(text)))


def version_not_found_message(plugin: str, requirement: str) -> str:
    """Say in Connect's words that no such version of a plug-in exists."""
    text = _as_range(trim(requirement))
    if _RANGE.fullmatch(text) and "," not in text:
        text = f"[{text[1:-1]},{text[1:-1]}]"
    return (
        f"Plugin {plugin} not found that matches the version range {text}, "
        f"available versions: [{PLUGIN_VERSION}]"
    )


def _as_range(text: str) -> str:
    return text if text.startswith(("[", "(")) else f"[{text}]"


def _is_in_range(version: str, left: str, low: str, comma: str, high: str, right: str) -> bool:
    here = _sort_key(version)
    if not comma:
        return bool(low) and here == _sort_key(low)
    above = not low or here > _sort_key(low) or (left == "[" and here == _sort_key(low))
    below = not high or here < _sort_key(high) or (right == "]" and here == _sort_key(high))
    return above and below


def _sort_key(version: str) -> tuple[tuple[int, ...], bool]:
    """The sort key of a version: its numbers; `-rc1` and the like come before the release."""
    numbers, _, qualifier = trim(version).partition("-")
    parts = [int(part) if part.isdecimal() else 0 for part in numbers.split(".")]
    while parts and not parts[-1]:
        parts.pop()
    return tuple(parts), not qualifier


@dataclass(frozen=True, slots=True)
class PluginVersionValidator:
    """Validator of keys that require a version.

    `connector_config_validation` checks whether the version exists.
    """

    description: str = "org.apache.kafka.connect.runtime.ConnectorConfig$PluginVersionValidator"

    def validation_error(self, name: str, value: ParsedValue) -> str | None:
        if not isinstance(value, str) or not value.startswith(("[", "(")):
            return None
        if _RANGES.fullmatch(value):
            return None
        return invalid_value_message(
            name, value, "not a range of versions; write one like [4.0,5.0)"
        )


@dataclass(frozen=True, slots=True)
class AvailableVersionValidator:
    """Validator of a key that requires a version of a known plug-in."""

    plugin: str

    @property
    def description(self) -> str:
        return PluginVersionValidator().description

    def validation_error(self, name: str, value: ParsedValue) -> str | None:
        if not isinstance(value, str) or satisfies_requirement(value):
            return None
        return PluginVersionValidator().validation_error(name, value) or version_not_found_message(
            self.plugin, value
        )

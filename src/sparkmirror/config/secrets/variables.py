"""Placeholders `${provider:[path:]key}` in values, and their expansion.

The expansion of a configuration is one pass: it calls each provider once per path and replaces
every placeholder of every value. A placeholder without a provider, or without a value, stays as
text. Expanded values are kept in memory only: what is stored or shown has the placeholders.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from sparkmirror.config.notices import Notice, NoticeKind
from sparkmirror.errors import ConfigError, ConfigFault

_VARIABLE = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")


class ConfigVariable(NamedTuple):
    """The parts of one placeholder. Without a path, the path is empty."""

    provider: str
    path: str
    key: str

    def __str__(self) -> str:
        path = f"{self.path}:" if self.path else ""
        return f"${{{self.provider}:{path}{self.key}}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigData:
    """The values that a provider has for one path, and how long they are valid."""

    values: Mapping[str, str] = field(repr=False)
    ttl_ms: int | None = None
    missing_reason: str = "it has no such key"
    """Why a requested key is not among the values."""


class ConfigProvider(Protocol):
    """A source of values.

    `get` raises ConfigError if it fails to read the path. A path that is not allowed and a missing
    key are no errors: the placeholder then stays as text.
    """

    def get(self, path: str, keys: frozenset[str]) -> ConfigData:
        """The values of these keys of one path."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpandedConfig:
    """A configuration with its placeholders replaced. Holds secrets: keep it in memory."""

    values: dict[str, str] = field(repr=False)
    ttls_ms: dict[str, int]
    """For each path, the time after which its values should be fetched again."""
    unresolved: tuple[Notice, ...]


def find_variables(text: str) -> Iterator[ConfigVariable]:
    """Every placeholder of a value, from left to right."""
    for match in _VARIABLE.finditer(text):
        yield _variable(match)


def rewrite_variables(text: str, change: Callable[[ConfigVariable], ConfigVariable]) -> str:
    """The text with each placeholder changed."""
    return _VARIABLE.sub(lambda match: str(change(_variable(match))), text)


def has_only_variables(text: str) -> bool:
    """Whether a value consists of placeholders only, so that it contains no secret."""
    rest, placeholders = _VARIABLE.subn("", text)
    return placeholders > 0 and not rest.strip()


def expand_variables(
    raw: Mapping[str, str], providers: Mapping[str, ConfigProvider]
) -> ExpandedConfig:
    """Replace every placeholder that has a value. Raises ConfigError for what cannot be read."""
    users: dict[tuple[str, str], dict[str, list[ConfigVariable]]] = {}
    for key, value in raw.items():
        for variable in find_variables(value) if "${" in value else ():
            location = (variable.provider, variable.path)
            users.setdefault(location, {}).setdefault(key, []).append(variable)
    fetched = _fetch(users, providers)
    return ExpandedConfig(
        values={
            key: _replace(value, fetched) if "${" in value else value for key, value in raw.items()
        },
        ttls_ms={
            path: data.ttl_ms
            for (_, path), data in fetched.items()
            if data.ttl_ms is not None and data.ttl_ms >= 0
        },
        unresolved=tuple(_unresolved_notices(users, fetched)),
    )


def restore_variables(raw: Mapping[str, str], expanded: Mapping[str, str]) -> dict[str, str]:
    """The expanded config with the raw value of each key that has a placeholder."""
    return {
        key: raw[key] if key in raw and _VARIABLE.search(raw[key]) else value
        for key, value in expanded.items()
    }


def redact_fault(
    fault: ConfigFault,
    raw: Mapping[str, str],
    expanded: Mapping[str, str],
    quoted: Iterable[str] = (),
) -> ConfigFault:
    """The fault without the value of a placeholder, which may be a secret.

    `quoted` are other keys whose values the message may contain. If one of them has a placeholder,
    the result is a fault of that key.
    """
    for key in (fault.key, *quoted):
        written = raw.get(key)
        if written is not None and written != expanded.get(key):
            message = (
                f"Invalid value {written} for configuration {key}: what the provider gives for it "
                "will not do (it is not shown, as it may be a secret)"
            )
            return ConfigFault(key, message)
    return fault


VariableUses = Mapping[tuple[str, str], Mapping[str, list[ConfigVariable]]]
FetchedData = Mapping[tuple[str, str], ConfigData]


def _variable(match: re.Match[str]) -> ConfigVariable:
    return ConfigVariable(match[1], match[2] or "", match[3])


def _fetch(
    users: VariableUses, providers: Mapping[str, ConfigProvider]
) -> dict[tuple[str, str], ConfigData]:
    fetched: dict[tuple[str, str], ConfigData] = {}
    faults: list[ConfigFault] = []
    for (name, path), by_key in users.items():
        if name not in providers:
            continue
        keys = frozenset(variable.key for used in by_key.values() for variable in used)
        try:
            fetched[name, path] = providers[name].get(path, keys)
        except ConfigError as error:
            faults.extend(
                ConfigFault(key, f"{key}: {used[0]} cannot be fetched: {error}")
                for key, used in by_key.items()
            )
    if faults:
        raise ConfigError(faults)
    return fetched


def _replace(text: str, fetched: FetchedData) -> str:
    def value(match: re.Match[str]) -> str:
        variable = _variable(match)
        data = fetched.get((variable.provider, variable.path))
        return match[0] if data is None else data.values.get(variable.key, match[0])

    return _VARIABLE.sub(value, text)


def _unresolved_notices(users: VariableUses, fetched: FetchedData) -> Iterator[Notice]:
    for location, by_key in users.items():
        data = fetched.get(location)
        for key, used in by_key.items():
            for variable in used:
                if data is not None and variable.key in data.values:
                    continue
                reason = (
                    f"config.providers names no provider {variable.provider!r}"
                    if data is None
                    else data.missing_reason
                )
                yield Notice(
                    kind=NoticeKind.UNRESOLVED_VARIABLE,
                    message=f"{variable} is left as text: {reason}",
                    key=key,
                )

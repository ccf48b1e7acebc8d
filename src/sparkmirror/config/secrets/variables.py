"""Placeholders `${provider:[path:]key}` in values, and what stands behind them.

Knows the grammar of a placeholder and how a whole configuration is expanded: one pass, each
provider asked once per path, every placeholder of every value replaced on its own, and one that
nobody can answer left standing as text. Expanded values live in memory only: what is stored or
shown is the raw text, and `restore` puts it back.

Does not know where a provider looks, nor which key means what.
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
    """One placeholder, taken apart. A placeholder without a path has the empty path."""

    provider: str
    path: str
    key: str

    def __str__(self) -> str:
        path = f"{self.path}:" if self.path else ""
        return f"${{{self.provider}:{path}{self.key}}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigData:
    """What a provider says about one path: the values it has, and for how long they hold."""

    values: Mapping[str, str] = field(repr=False)
    ttl_ms: int | None = None
    missing_reason: str = "it has no such key"
    """Why a key that was asked for is not among the values."""


class ConfigProvider(Protocol):
    """A place that values can be fetched from.

    `get` raises ConfigError if the place should be readable and is not; a path that it may not
    read, and a key that is not there, are no errors: the placeholder then stays as it is.
    """

    def get(self, path: str, keys: frozenset[str]) -> ConfigData:
        """Fetch these keys of one path."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpandedConfig:
    """A configuration with its placeholders replaced. Holds secrets: keep it in memory."""

    values: dict[str, str] = field(repr=False)
    ttls_ms: dict[str, int]
    """Path to the time after which its values should be fetched again."""
    unresolved: tuple[Notice, ...]


def find_variables(text: str) -> Iterator[ConfigVariable]:
    """Every placeholder of a value, from left to right."""
    for match in _VARIABLE.finditer(text):
        yield _variable(match)


def rewrite_variables(text: str, change: Callable[[ConfigVariable], ConfigVariable]) -> str:
    """The same text with other placeholders in it."""
    return _VARIABLE.sub(lambda match: str(change(_variable(match))), text)


def has_only_variables(text: str) -> bool:
    """Whether nothing but placeholders stands here: such a text reveals nothing."""
    rest, placeholders = _VARIABLE.subn("", text)
    return placeholders > 0 and not rest.strip()


def expand_variables(
    raw: Mapping[str, str], providers: Mapping[str, ConfigProvider]
) -> ExpandedConfig:
    """Replace every placeholder that can be answered. ConfigError lists what cannot be read."""
    users: dict[tuple[str, str], dict[str, list[ConfigVariable]]] = {}
    for key, value in raw.items():
        for variable in find_variables(value) if "${" in value else ():
            place = (variable.provider, variable.path)
            users.setdefault(place, {}).setdefault(key, []).append(variable)
    answers = _fetch(users, providers)
    return ExpandedConfig(
        values={
            key: _replace(value, answers) if "${" in value else value for key, value in raw.items()
        },
        ttls_ms={
            path: answer.ttl_ms
            for (_, path), answer in answers.items()
            if answer.ttl_ms is not None and answer.ttl_ms >= 0
        },
        unresolved=tuple(_unresolved_notices(users, answers)),
    )


def restore_variables(raw: Mapping[str, str], expanded: Mapping[str, str]) -> dict[str, str]:
    """Give every key whose raw value holds a placeholder its raw value back."""
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
    """A fault that does not quote what was fetched for a placeholder: it may be a secret.

    `quoted` are other keys whose values the fault may quote. One that was fetched takes the blame.
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
    answers: dict[tuple[str, str], ConfigData] = {}
    faults: list[ConfigFault] = []
    for (name, path), by_key in users.items():
        if name not in providers:
            continue
        wanted = frozenset(variable.key for found in by_key.values() for variable in found)
        try:
            answers[name, path] = providers[name].get(path, wanted)
        except ConfigError as error:
            faults.extend(
                ConfigFault(key, f"{key}: {found[0]} cannot be fetched: {error}")
                for key, found in by_key.items()
            )
    if faults:
        raise ConfigError(faults)
    return answers


def _replace(text: str, answers: FetchedData) -> str:
    def value(match: re.Match[str]) -> str:
        variable = _variable(match)
        answer = answers.get((variable.provider, variable.path))
        return match[0] if answer is None else answer.values.get(variable.key, match[0])

    return _VARIABLE.sub(value, text)


def _unresolved_notices(users: VariableUses, answers: FetchedData) -> Iterator[Notice]:
    for place, by_key in users.items():
        answer = answers.get(place)
        for key, found in by_key.items():
            for variable in found:
                if answer is not None and variable.key in answer.values:
                    continue
                reason = (
                    f"config.providers names no provider {variable.provider!r}"
                    if answer is None
                    else answer.missing_reason
                )
                yield Notice(
                    kind=NoticeKind.UNRESOLVED_VARIABLE,
                    message=f"{variable} is left as text: {reason}",
                    key=key,
                )

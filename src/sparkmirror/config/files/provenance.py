"""Settings with their origin and the values that they override.

A compiled config results from several rules. Each setting keeps its origin (the rule, and the key
and line of the file) and the candidates that it overrides, strongest first, so that an explanation
need not apply the rules again.

The rules themselves are in `flow_config_precedence`. Values may be secrets: no repr contains one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class PrecedenceRule(StrEnum):
    """The rule that supplied a value. `sparkmirror config explain` prints it."""

    FLOW = "set for the flow"
    CLUSTER = "set for the cluster"
    TOP_LEVEL = "set for all flows"
    EVERY_CLUSTER = "set for all clusters"
    DERIVED = "supplied by dedicated mode"
    EVENT_HUBS = "supplied for Azure Event Hubs"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigOrigin:
    """The origin of a value. A derived value has no key and no line."""

    rule: PrecedenceRule
    key: str = ""
    """The key as the file writes it, prefix included."""
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateValue:
    """A value that a rule supplied."""

    value: str = field(repr=False)
    origin: ConfigOrigin


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedSetting:
    """The value of a setting, and the candidates that it overrides, strongest first."""

    value: str = field(repr=False)
    origin: ConfigOrigin
    overridden: tuple[CandidateValue, ...] = ()

    @property
    def candidates(self) -> tuple[CandidateValue, ...]:
        """All candidates, strongest first."""
        return (CandidateValue(value=self.value, origin=self.origin), *self.overridden)


class LayeredConfig(Mapping[str, ResolvedSetting]):
    """A config under construction, with all candidates of each key."""

    def __init__(self) -> None:
        self._settings: dict[str, ResolvedSetting] = {}

    def __getitem__(self, key: str) -> ResolvedSetting:
        return self._settings[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._settings)

    def __len__(self) -> int:
        return len(self._settings)

    def __repr__(self) -> str:
        return f"LayeredConfig({sorted(self._settings)})"

    def add_override(self, key: str, *candidates: CandidateValue) -> None:
        """Add candidates, strongest first, that win over the existing ones."""
        before = self._settings[key].candidates if key in self._settings else ()
        self._settings[key] = _resolve((*candidates, *before))

    def add_fallback(self, key: str, *candidates: CandidateValue) -> None:
        """Add candidates, strongest first, that the existing ones win over."""
        before = self._settings[key].candidates if key in self._settings else ()
        self._settings[key] = _resolve((*before, *candidates))

    @property
    def props(self) -> dict[str, str]:
        """The value of each key."""
        return {key: setting.value for key, setting in self._settings.items()}


def _resolve(candidates: tuple[CandidateValue, ...]) -> ResolvedSetting:
    winner, *overridden = candidates
    return ResolvedSetting(value=winner.value, origin=winner.origin, overridden=tuple(overridden))

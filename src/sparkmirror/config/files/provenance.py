"""Settings that remember where they came from and what they won against.

A compiled configuration is made by laying rules over each other. Each value keeps its origin (the
rule, and the key and line of the file behind it) and the candidates that lost to it, strongest
first, so that nobody has to derive the rules a second time to explain the outcome.

Knows how layers combine; does not know any rule. Values may be secrets: no repr shows one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class PrecedenceRule(StrEnum):
    """Which rule supplied a value, in words an operator understands."""

    FLOW = "set for the flow"
    CLUSTER = "set for the cluster"
    TOP_LEVEL = "set for all flows"
    EVERY_CLUSTER = "set for all clusters"
    DERIVED = "supplied by dedicated mode"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigOrigin:
    """Where a value came from. A derived value has no key and no line."""

    rule: PrecedenceRule
    key: str = ""
    """The key as the file writes it, prefix included."""
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateValue:
    """A value that a rule offered."""

    value: str = field(repr=False)
    origin: ConfigOrigin


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedSetting:
    """The value that counts, and the candidates it won against, strongest first."""

    value: str = field(repr=False)
    origin: ConfigOrigin
    overridden: tuple[CandidateValue, ...] = ()

    @property
    def candidates(self) -> tuple[CandidateValue, ...]:
        """All that was offered, the winner first."""
        return (CandidateValue(value=self.value, origin=self.origin), *self.overridden)


class LayeredConfig(Mapping[str, ResolvedSetting]):
    """A configuration under construction: `put` wins over what is there, `fill` gives way."""

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

    def add_override(self, key: str, *offered: CandidateValue) -> None:
        """Lay candidates, strongest first, over those that are there."""
        before = self._settings[key].candidates if key in self._settings else ()
        self._settings[key] = _resolve((*offered, *before))

    def add_fallback(self, key: str, *offered: CandidateValue) -> None:
        """Lay candidates, strongest first, under those that are there."""
        before = self._settings[key].candidates if key in self._settings else ()
        self._settings[key] = _resolve((*before, *offered))

    @property
    def props(self) -> dict[str, str]:
        """Key and value, nothing else."""
        return {key: setting.value for key, setting in self._settings.items()}


def _resolve(candidates: tuple[CandidateValue, ...]) -> ResolvedSetting:
    winner, *overrode = candidates
    return ResolvedSetting(value=winner.value, origin=winner.origin, overridden=tuple(overrode))

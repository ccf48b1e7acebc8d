"""Why a setting has the value it has: the rule, the line of the file, and what it won against.

Reads what the compiler remembered; derives nothing itself. All values here are already redacted,
so an explanation may be printed as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from sparkmirror.config.dedicated import Dedicated
from sparkmirror.config.landings import compiled
from sparkmirror.config.layers import Origin, Rule, Setting
from sparkmirror.config.parts import Part
from sparkmirror.config.redaction import shown
from sparkmirror.config.suggestions import suggestion
from sparkmirror.errors import ConfigError
from sparkmirror.model import SourceAndTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A value as it may be seen, and where it came from."""

    value: str | None
    """None where a default is null."""
    origin: Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One setting of one part of a flow."""

    flow: SourceAndTarget
    part: Part
    key: str
    value: str | None
    origin: Origin
    overrode: tuple[Reading, ...] = ()
    """What lost, strongest first; the default, if there is one, comes last."""
    is_read: bool = True
    """False for a setting that lands in the config and is never looked at."""


def explain_all(dedicated: Dedicated, flow: SourceAndTarget, part: Part) -> tuple[Explanation, ...]:
    """Every setting of the part's config, in alphabetical order. Mere defaults are left out."""
    layers = compiled(dedicated, flow, part)
    return tuple(_explained(dedicated, flow, part, key, layers[key]) for key in sorted(layers))


def explain(dedicated: Dedicated, flow: SourceAndTarget, part: Part, key: str) -> Explanation:
    """One setting, or its default. ConfigError if the part has no such setting."""
    layers = compiled(dedicated, flow, part)
    if key in layers:
        return _explained(dedicated, flow, part, key, layers[key])
    default = _default(part, key)
    if default is None:
        meant = suggestion(key, sorted({*layers, *part.table.names}))
        advice = f"; did you mean {meant}?" if meant else ""
        raise ConfigError.of(key, f"The {part} of {flow} has no setting {key}{advice}")
    return Explanation(flow=flow, part=part, key=key, value=default.value, origin=default.origin)


def _explained(
    dedicated: Dedicated, flow: SourceAndTarget, part: Part, key: str, setting: Setting
) -> Explanation:
    lost = [
        Reading(value=shown(key, candidate.value), origin=candidate.origin)
        for candidate in setting.overrode
    ]
    default = _default(part, key)
    return Explanation(
        flow=flow,
        part=part,
        key=key,
        value=shown(key, setting.value),
        origin=setting.origin,
        overrode=(*_earlier(dedicated, setting.origin), *lost, *([default] if default else ())),
        is_read=part.reads(key),
    )


def _earlier(dedicated: Dedicated, origin: Origin) -> list[Reading]:
    """The same key on earlier lines of the file, the latest first."""
    if all(duplicate.key != origin.key for duplicate in dedicated.file.duplicates):
        return []
    return [
        Reading(
            value=shown(entry.key, entry.value),
            origin=Origin(rule=origin.rule, key=entry.key, line=entry.line),
        )
        for entry in reversed(dedicated.file.entries)
        if entry.key == origin.key and entry.line != origin.line
    ]


def _default(part: Part, key: str) -> Reading | None:
    if key not in part.table or part.table[key].required:
        return None
    return Reading(value=part.table[key].default_text, origin=Origin(rule=Rule.DEFAULT))

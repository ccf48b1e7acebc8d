"""Why a setting has the value it has: the rule, the line of the file, and what it won against.

Reads what the compiler remembered; derives nothing itself. All values here are already redacted,
so an explanation may be printed as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from sparkmirror.config.files.flow_parts import FlowPart
from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.config.files.provenance import ConfigOrigin, PrecedenceRule, ResolvedSetting
from sparkmirror.config.review.key_usage import compiled_config
from sparkmirror.config.secrets.redaction import redact_value
from sparkmirror.config.suggestions import closest_name
from sparkmirror.errors import ConfigError
from sparkmirror.model import SourceAndTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedValue:
    """A value as it may be seen, and where it came from."""

    value: str | None
    """None where a default is null."""
    origin: ConfigOrigin


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingExplanation:
    """One setting of one part of a flow."""

    flow: SourceAndTarget
    part: FlowPart
    key: str
    value: str | None
    origin: ConfigOrigin
    overridden: tuple[ExplainedValue, ...] = ()
    """What lost, strongest first; the default, if there is one, comes last."""
    is_read: bool = True
    """False for a setting that lands in the config and is never looked at."""


def explain_all(
    dedicated: MirrorMakerConfig, flow: SourceAndTarget, part: FlowPart
) -> tuple[SettingExplanation, ...]:
    """Every setting of the part's config, in alphabetical order. Mere defaults are left out."""
    layers = compiled_config(dedicated, flow, part)
    return tuple(_explanation(dedicated, flow, part, key, layers[key]) for key in sorted(layers))


def explain(
    dedicated: MirrorMakerConfig, flow: SourceAndTarget, part: FlowPart, key: str
) -> SettingExplanation:
    """One setting, or its default. ConfigError if the part has no such setting."""
    layers = compiled_config(dedicated, flow, part)
    if key in layers:
        return _explanation(dedicated, flow, part, key, layers[key])
    default = _default(part, key)
    if default is None:
        meant = closest_name(key, sorted({*layers, *part.config_def.names}))
        advice = f"; did you mean {meant}?" if meant else ""
        raise ConfigError.of(key, f"The {part} of {flow} has no setting {key}{advice}")
    return SettingExplanation(
        flow=flow, part=part, key=key, value=default.value, origin=default.origin
    )


def _explanation(
    dedicated: MirrorMakerConfig,
    flow: SourceAndTarget,
    part: FlowPart,
    key: str,
    setting: ResolvedSetting,
) -> SettingExplanation:
    lost = [
        ExplainedValue(value=redact_value(key, candidate.value), origin=candidate.origin)
        for candidate in setting.overridden
    ]
    default = _default(part, key)
    return SettingExplanation(
        flow=flow,
        part=part,
        key=key,
        value=redact_value(key, setting.value),
        origin=setting.origin,
        overridden=(
            *_earlier_duplicates(dedicated, setting.origin),
            *lost,
            *([default] if default else ()),
        ),
        is_read=part.reads(key),
    )


def _earlier_duplicates(dedicated: MirrorMakerConfig, origin: ConfigOrigin) -> list[ExplainedValue]:
    """The same key on earlier lines of the file, the latest first."""
    if all(duplicate.key != origin.key for duplicate in dedicated.properties.duplicates):
        return []
    return [
        ExplainedValue(
            value=redact_value(entry.key, entry.value),
            origin=ConfigOrigin(rule=origin.rule, key=entry.key, line=entry.line),
        )
        for entry in reversed(dedicated.properties.entries)
        if entry.key == origin.key and entry.line != origin.line
    ]


def _default(part: FlowPart, key: str) -> ExplainedValue | None:
    if key not in part.config_def or part.config_def[key].required:
        return None
    return ExplainedValue(
        value=part.config_def[key].default_text, origin=ConfigOrigin(rule=PrecedenceRule.DEFAULT)
    )

"""Why a setting has its value: the rule, the line of the file, and the values it overrides.

Reads the origins that the compiler has kept. A property of a client (`source.consumer.*`,
`producer.override.*`) is explained as the client gets it, from all keys that may set it. All values
here are redacted, so an explanation may be printed as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sparkmirror.config.client_configs import ClientType, ClusterSide, ConnectorClient
from sparkmirror.config.definition.enrichment import undeclared_keys
from sparkmirror.config.definition.java_classes import resolve_class
from sparkmirror.config.definition.override_policy import PRODUCER_OVERRIDE_PREFIX
from sparkmirror.config.files.client_config_origins import (
    add_worker_defaults,
    client_layers,
    worker_producer_layers,
)
from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.config.files.provenance import (
    ConfigOrigin,
    LayeredConfig,
    PrecedenceRule,
    ResolvedSetting,
)
from sparkmirror.config.files.worker_and_connector_keys import FlowPart
from sparkmirror.config.review.ineffective_settings import no_effect_reason
from sparkmirror.config.review.key_usage import compiled_config
from sparkmirror.config.secrets.redaction import redact_value
from sparkmirror.config.suggestions import closest_name
from sparkmirror.config.tables.client.common_client_configs import CLIENT
from sparkmirror.errors import ConfigError
from sparkmirror.model import SourceAndTarget

_CLIENT_PROPERTY = re.compile(
    rf"(?P<side>{'|'.join(ClusterSide)})\.(?P<client_type>{'|'.join(ClientType)})\.(?P<name>.+)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedValue:
    """A redacted value and its origin."""

    value: str | None
    """None if a default is null."""
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
    """The values that it overrides, strongest first; the default, if there is one, is last."""
    is_read: bool = True
    """False for a setting that is part of the config but has no reader."""
    no_effect: str = ""
    """Why the value has no effect, if the part declares the setting or passes it to a client."""


def explain_all(
    config: MirrorMakerConfig, flow: SourceAndTarget, part: FlowPart
) -> tuple[SettingExplanation, ...]:
    """Every setting of the part's config, in alphabetical order, without mere defaults."""
    explainer = _PartExplainer(config, flow, part)
    found = (explainer.find(key) for key in sorted(explainer.layers))
    return tuple(one for one in found if one is not None)


def explain(
    config: MirrorMakerConfig, flow: SourceAndTarget, part: FlowPart, key: str
) -> SettingExplanation:
    """One setting, or its default. Raises ConfigError if the part has no such setting."""
    explainer = _PartExplainer(config, flow, part)
    found = explainer.find(key)
    if found is None:
        meant = closest_name(key, sorted({*explainer.layers, *part.config_def.names}))
        advice = f"; did you mean {meant}?" if meant else ""
        raise ConfigError.of(key, f"The {part} of {flow} has no setting {key}{advice}")
    return found


def find_explanation(
    config: MirrorMakerConfig, flow: SourceAndTarget, part: FlowPart, key: str
) -> SettingExplanation | None:
    """One setting, or its default; None if the part has no such setting."""
    return _PartExplainer(config, flow, part).find(key)


def is_client_property(key: str) -> bool:
    """Whether a key of a connector's config is a property of one client."""
    return _CLIENT_PROPERTY.fullmatch(key) is not None or key.startswith(PRODUCER_OVERRIDE_PREFIX)


class _PartExplainer:
    """Explains the settings of one part of a flow."""

    def __init__(self, config: MirrorMakerConfig, flow: SourceAndTarget, part: FlowPart) -> None:
        self._config = config
        self._flow = flow
        self._part = part
        self.layers = compiled_config(config, flow, part)
        if part is FlowPart.WORKER:
            add_worker_defaults(self.layers, self._expand)
        self._client_layers: dict[ConnectorClient | None, LayeredConfig] = {}
        self._undeclared = undeclared_keys(self.layers.props, resolve_class)

    def find(self, key: str) -> SettingExplanation | None:
        """The explanation of a setting, or of its default; None if there is no such setting."""
        layers, name = self._deciding_layers(key)
        default = _default(self._part, key)
        if name in layers:
            return self._explanation(key, layers[name], default)
        if default is None:
            return None
        reason = self._no_effect_reason(key)
        return SettingExplanation(
            flow=self._flow,
            part=self._part,
            key=key,
            value=default.value,
            origin=default.origin,
            is_read=not reason,
            no_effect=reason,
        )

    def _no_effect_reason(self, key: str) -> str:
        return no_effect_reason(self._part, key, self.layers.props)

    def _deciding_layers(self, key: str) -> tuple[LayeredConfig, str]:
        """The config that decides a setting, and the name of the setting in it."""
        if self._part is FlowPart.WORKER:
            return self.layers, key
        if key.startswith(PRODUCER_OVERRIDE_PREFIX):
            return self._layers_of(None), key.removeprefix(PRODUCER_OVERRIDE_PREFIX)
        match = _CLIENT_PROPERTY.fullmatch(key)
        if match is None:
            return self.layers, key
        client = ConnectorClient(ClusterSide(match["side"]), ClientType(match["client_type"]))
        return self._layers_of(client), match["name"]

    def _layers_of(self, client: ConnectorClient | None) -> LayeredConfig:
        """The properties of a client; None stands for the worker's producer."""
        if client not in self._client_layers:
            self._client_layers[client] = (
                worker_producer_layers(
                    self._config.layered_worker_config(self._flow), self.layers, self._expand
                )
                if client is None
                else client_layers(self.layers, client)
            )
        return self._client_layers[client]

    def _expand(self, written: Mapping[str, str]) -> Mapping[str, str]:
        """Replace placeholders; one that cannot be read now stays as text."""
        return self._config.lenient().expand(written).values

    def _explanation(
        self, key: str, setting: ResolvedSetting, default: ExplainedValue | None
    ) -> SettingExplanation:
        # One key of the file may reach a client in several ways: show it once.
        distinct = dict.fromkeys(candidate.origin for candidate in setting.overridden)
        values = {c.origin: c.value for c in reversed(setting.overridden)}
        lost = [
            ExplainedValue(value=redact_value(key, values[origin]), origin=origin)
            for origin in distinct
            if origin != setting.origin
        ]
        is_read = self._part.reads(key) and key not in self._undeclared
        reason = self._no_effect_reason(key) if is_read else ""
        return SettingExplanation(
            flow=self._flow,
            part=self._part,
            key=key,
            value=redact_value(key, setting.value),
            origin=setting.origin,
            overridden=(
                *_earlier_duplicates(self._config, setting.origin),
                *lost,
                *([default] if default else ()),
            ),
            is_read=is_read and not reason,
            no_effect=reason,
        )


def _earlier_duplicates(config: MirrorMakerConfig, origin: ConfigOrigin) -> list[ExplainedValue]:
    """The same key on earlier lines of the file, the latest first."""
    if all(duplicate.key != origin.key for duplicate in config.properties.duplicates):
        return []
    return [
        ExplainedValue(
            value=redact_value(entry.key, entry.value),
            origin=ConfigOrigin(rule=origin.rule, key=entry.key, line=entry.line),
        )
        for entry in reversed(config.properties.entries)
        if entry.key == origin.key and entry.line != origin.line
    ]


def _default(part: FlowPart, key: str) -> ExplainedValue | None:
    """The default of a key that the part declares, or of a security property of a client."""
    config_def, name = part.config_def, key
    match = _CLIENT_PROPERTY.fullmatch(key)
    if match and key not in config_def and part is not FlowPart.WORKER:
        config_def, name = CLIENT, match["name"]
    if name not in config_def or config_def[name].required:
        return None
    return ExplainedValue(
        value=config_def[name].default_text, origin=ConfigOrigin(rule=PrecedenceRule.DEFAULT)
    )

"""A connector's config, judged as a whole.

    what was said ─► framework's table, with what it brings along ─► the worker's checks ─┐
                  └► the connector's own table ────────────────────► its own checks ──────┤
                                              connector's findings win, key by key ◄──────┘
                                              then converters, then forbidden overrides

The connector declares the general keys once more, so its findings replace the framework's: that
is why a fault in `tasks.max` is told once and not twice. Whoever calls has resolved variables
(`${...}`) and read retired keys as they were meant (`retired`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from sparkmirror.config.checks import connector_faults, with_faults, worker_faults
from sparkmirror.config.classes import known_class
from sparkmirror.config.definition import ConfigDef, ConfigValue, Key
from sparkmirror.config.enrichment import condition_faults, enriched
from sparkmirror.config.overrides import refused_overrides
from sparkmirror.config.plugins import CONNECTOR_PLUGINS, Plugin, find_connector
from sparkmirror.config.recommenders import Offer
from sparkmirror.config.redaction import shown
from sparkmirror.config.tables.converters import CONVERTER_TABLES, CONVERTER_TYPE
from sparkmirror.config.tables.framework import CONNECTOR
from sparkmirror.config.value import ClassResolver, Props, trim
from sparkmirror.config.versions import PLUGIN_VERSION, meets, not_found
from sparkmirror.errors import BadRequest, Fault

CONNECTOR_CLASS: Final = "connector.class"
CONNECTOR_VERSION: Final = "connector.plugin.version"

_NULL: Final = "Null value can not be supplied as the configuration value."


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerTerms:
    """What a worker grants its connectors."""

    exactly_once: bool = False
    override_policy: str = "All"
    override_allowlist: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found out about one key; a name that no table knows has no key."""

    key: Key | None
    value: ConfigValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """All findings about one config, in the order in which Connect lists them."""

    connector_class: str
    groups: tuple[str, ...]
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> tuple[str, ...]:
        """Every error of every key."""
        return tuple(error for finding in self.findings for error in finding.value.errors)


def validate_connector(
    props: Props, worker: WorkerTerms, classes: ClassResolver = known_class
) -> Validation:
    """Judge a connector's config. Raises BadRequest only if it names no connector."""
    plugin = _connector(props)
    requirement = props.get(CONNECTOR_VERSION)
    if requirement is not None and not meets(requirement):
        return _wrong_version(plugin, props, requirement, classes)
    framework = enriched(props, classes)
    values = _framework_values(plugin, props, framework, worker, classes)
    values |= _connector_values(plugin, props, classes)
    keys = framework.updated(plugin.table)
    converters = list(_converter_findings(props, values, classes))
    refused = refused_overrides(props, worker.override_policy, worker.override_allowlist)
    return Validation(
        connector_class=props[CONNECTOR_CLASS] or "",
        groups=tuple(dict.fromkeys([*keys.groups, *_groups(converters)])),
        findings=(
            *_findings(keys, values),
            *converters,
            *(Finding(None, value) for value in refused),
        ),
    )


def _connector(props: Props) -> Plugin:
    name = props.get(CONNECTOR_CLASS)
    if name is None:
        said = ", ".join(f"{key}={_echo(key, value)}" for key, value in props.items())
        raise BadRequest(f"Connector config {{{said}}} contains no connector type")
    plugin = find_connector(trim(name))
    if plugin is None:
        available = ", ".join(map(str, CONNECTOR_PLUGINS))
        raise BadRequest(
            "Failed to find any class that implements Connector and which name matches "
            f"{name}, available connectors are: {available}"
        )
    return plugin


def _echo(key: str, value: str | None) -> str:
    return "null" if value is None else shown(key, value)


def _framework_values(
    plugin: Plugin, props: Props, table: ConfigDef, worker: WorkerTerms, classes: ClassResolver
) -> dict[str, ConfigValue]:
    values = {value.name: value for value in table.validate(props, classes)}
    faults = [
        *condition_faults(props, values),
        *worker_faults(plugin.class_name, values, exactly_once=worker.exactly_once),
        *(Fault(name, _NULL) for name, said in props.items() if said is None),
    ]
    return with_faults(values, faults)


def _connector_values(
    plugin: Plugin, props: Props, classes: ClassResolver
) -> dict[str, ConfigValue]:
    values = {value.name: value for value in plugin.table.validate(props, classes)}
    return with_faults(values, connector_faults(plugin.class_name, props, values))


def _findings(keys: ConfigDef, values: Mapping[str, ConfigValue]) -> Iterator[Finding]:
    """Names without a key come first."""
    for name, value in values.items():
        if name not in keys:
            yield Finding(None, value)
    for key in keys:
        yield Finding(key, values[key.name])


def _converter_findings(
    props: Props, values: Mapping[str, ConfigValue], classes: ClassResolver
) -> Iterator[Finding]:
    """Judge the keys of the converters that the connector names itself."""
    for part in ("header", "key", "value"):
        name = f"{part}.converter"
        table = CONVERTER_TABLES.get(str(values[name].value))
        if table is None:
            continue
        prefix = f"{name}."
        said = {
            key.removeprefix(prefix): value
            for key, value in props.items()
            if key.startswith(prefix)
        }
        for value in table.validate({CONVERTER_TYPE: part} | said, classes):
            key = table[value.name]
            yield Finding(
                replace(key, name=prefix + key.name), replace(value, name=prefix + value.name)
            )


def _groups(findings: list[Finding]) -> Iterator[str]:
    for finding in findings:
        if finding.key and finding.key.group:
            yield finding.key.group


def _wrong_version(
    plugin: Plugin, props: Props, requirement: str, classes: ClassResolver
) -> Validation:
    """Judge the general keys only: what a version that is not there would ask is not known."""
    asked = replace(
        CONNECTOR[CONNECTOR_VERSION], default=PLUGIN_VERSION, recommender=Offer((PLUGIN_VERSION,))
    )
    table = CONNECTOR.updated(ConfigDef(asked))
    fault = not_found(plugin.class_name, requirement)
    values = {value.name: value for value in table.validate(props, classes)}
    faults = [Fault(CONNECTOR_CLASS, fault), Fault(CONNECTOR_VERSION, fault)]
    values = with_faults(values, faults)
    return Validation(
        connector_class=props[CONNECTOR_CLASS] or "",
        groups=table.groups,
        findings=tuple(_findings(table, values)),
    )

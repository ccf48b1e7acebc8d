"""The validation of a connector's config.

    the config ─► framework's table, enriched ─► the worker's checks ─┐
               └► the connector's own table ───► its own checks ──────┤
                              connector's results win, key by key ◄───┘
                              then converters, then forbidden overrides

A key of our own that a source connector sets is checked too. It is in no table, so it is in the
result only if it has a fault.

The connector declares the general keys again, so its results replace the framework's: a fault in
`tasks.max` is reported once. The caller has expanded placeholders (`${...}`) and replaced
deprecated keys (`files.deprecated_keys`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from sparkmirror.config.definition.config_def import ConfigDef, ConfigKey, ConfigValue
from sparkmirror.config.definition.cross_key_checks import (
    add_faults,
    connector_faults,
    worker_faults,
)
from sparkmirror.config.definition.enrichment import enrich, predicate_faults
from sparkmirror.config.definition.java_classes import SOURCE_CONNECTOR, resolve_class
from sparkmirror.config.definition.override_policy import disallowed_overrides
from sparkmirror.config.definition.plugin_versions import (
    PLUGIN_VERSION,
    satisfies_requirement,
    version_not_found_message,
)
from sparkmirror.config.definition.plugins import CONNECTOR_PLUGINS, PluginDesc, find_connector
from sparkmirror.config.definition.recommenders import FixedRecommender
from sparkmirror.config.definition.value_types import ClassResolver, Props, trim
from sparkmirror.config.plugin_module_allowlist import (
    NO_PLUGIN_MODULES,
    PLUGIN_CLASS_KEYS,
    TRANSFORM_FUNCTION,
    PluginModuleAllowlist,
    is_python_class,
)
from sparkmirror.config.secrets.redaction import redact_value
from sparkmirror.config.tables.additions import SOURCE_ADDITIONS
from sparkmirror.config.tables.connector_config import CONNECTOR
from sparkmirror.config.tables.plugins.converters import CONVERTER_TABLES, CONVERTER_TYPE
from sparkmirror.errors import BadRequest, ConfigFault

CONNECTOR_CLASS: Final = "connector.class"
CONNECTOR_VERSION: Final = "connector.plugin.version"

_NULL_MESSAGE: Final = "Null value can not be supplied as the configuration value."


TransformationFaults: TypeAlias = Callable[[Props], Sequence[ConfigFault]]
"""Returns the transformations of a source connector that a worker cannot run."""


def no_transformation_faults(props: Props) -> Sequence[ConfigFault]:
    """No faults: the check of a worker that knows no more than the tables."""
    del props
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerCapabilities:
    """What a worker supports and allows for its connectors."""

    exactly_once: bool = False
    override_policy: str = "All"
    override_allowlist: tuple[str, ...] = ()
    plugin_modules: PluginModuleAllowlist = NO_PLUGIN_MODULES
    transformation_faults: TransformationFaults = no_transformation_faults
    """The package that has them lies above this one."""


@dataclass(frozen=True, slots=True)
class ConfigInfo:
    """The result for one key. A name that is in no table has no key."""

    key: ConfigKey | None
    value: ConfigValue


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigInfos:
    """The results for all keys of one config, in Connect's order."""

    connector_class: str
    groups: tuple[str, ...]
    configs: tuple[ConfigInfo, ...]

    @property
    def errors(self) -> tuple[str, ...]:
        """Every error of every key."""
        return tuple(error for info in self.configs for error in info.value.errors)


def validate_connector_config(
    props: Props, worker: WorkerCapabilities, classes: ClassResolver = resolve_class
) -> ConfigInfos:
    """Validate a connector's config. Raises BadRequest only if it names no known connector."""
    plugin = _require_connector(props)
    requirement = props.get(CONNECTOR_VERSION)
    if requirement is not None and not satisfies_requirement(requirement):
        return _version_not_found(plugin, props, requirement, classes)
    framework = enrich(props, classes)
    values = _framework_values(plugin, props, framework, worker, classes)
    values |= _connector_values(plugin, props, classes)
    if plugin.class_name == SOURCE_CONNECTOR:
        values = add_faults(values, _addition_faults(props, worker))
    values = add_faults(values, _plugin_faults(values, worker.plugin_modules))
    keys = framework.updated(plugin.config_def)
    converters = list(_converter_config_infos(props, values, classes))
    refused = disallowed_overrides(props, worker.override_policy, worker.override_allowlist)
    return ConfigInfos(
        connector_class=props[CONNECTOR_CLASS] or "",
        groups=tuple(dict.fromkeys([*keys.groups, *_groups(converters)])),
        configs=(
            *_config_infos(keys, values),
            *converters,
            *(ConfigInfo(None, value) for value in refused),
        ),
    )


def _require_connector(props: Props) -> PluginDesc:
    name = props.get(CONNECTOR_CLASS)
    if name is None:
        shown = ", ".join(f"{key}={_redacted(key, value)}" for key, value in props.items())
        raise BadRequest(f"Connector config {{{shown}}} contains no connector type")
    plugin = find_connector(trim(name))
    if plugin is None:
        available = ", ".join(map(str, CONNECTOR_PLUGINS))
        raise BadRequest(
            "Failed to find any class that implements Connector and which name matches "
            f"{name}, available connectors are: {available}"
        )
    return plugin


def _redacted(key: str, value: str | None) -> str:
    return "null" if value is None else redact_value(key, value)


def _framework_values(
    plugin: PluginDesc,
    props: Props,
    config_def: ConfigDef,
    worker: WorkerCapabilities,
    classes: ClassResolver,
) -> dict[str, ConfigValue]:
    values = {value.name: value for value in config_def.validate(props, classes)}
    faults = [
        *predicate_faults(props, values),
        *worker_faults(plugin.class_name, values, exactly_once=worker.exactly_once),
        *(ConfigFault(name, _NULL_MESSAGE) for name, text in props.items() if text is None),
    ]
    return add_faults(values, faults)


def _connector_values(
    plugin: PluginDesc, props: Props, classes: ClassResolver
) -> dict[str, ConfigValue]:
    values = {value.name: value for value in plugin.config_def.validate(props, classes)}
    return add_faults(values, connector_faults(plugin.class_name, props, values))


def _addition_faults(props: Props, worker: WorkerCapabilities) -> Iterator[ConfigFault]:
    """Yield what is wrong with our own keys, and the transformations that cannot be run."""
    yield from SOURCE_ADDITIONS.faults(props)
    function = trim(props.get(TRANSFORM_FUNCTION) or "")
    refusal = ""
    if is_python_class(function):
        refusal = worker.plugin_modules.refusal(TRANSFORM_FUNCTION, function)
    if refusal:
        yield ConfigFault(TRANSFORM_FUNCTION, refusal)
    else:
        yield from worker.transformation_faults(props)


def _plugin_faults(
    values: Mapping[str, ConfigValue], modules: PluginModuleAllowlist
) -> Iterator[ConfigFault]:
    """Yield the policies and filters that the worker may not load."""
    for key in PLUGIN_CLASS_KEYS:
        name = values[key].value if key in values else None
        if isinstance(name, str) and is_python_class(name):
            refusal = modules.refusal(key, name)
            if refusal:
                yield ConfigFault(key, refusal)


def _config_infos(keys: ConfigDef, values: Mapping[str, ConfigValue]) -> Iterator[ConfigInfo]:
    """Names without a key come first."""
    for name, value in values.items():
        if name not in keys:
            yield ConfigInfo(None, value)
    for key in keys:
        yield ConfigInfo(key, values[key.name])


def _converter_config_infos(
    props: Props, values: Mapping[str, ConfigValue], classes: ClassResolver
) -> Iterator[ConfigInfo]:
    """The results for the keys of the converters that the connector names itself."""
    for part in ("header", "key", "value"):
        name = f"{part}.converter"
        table = CONVERTER_TABLES.get(str(values[name].value))
        if table is None:
            continue
        prefix = f"{name}."
        own = {
            key.removeprefix(prefix): value
            for key, value in props.items()
            if key.startswith(prefix)
        }
        for value in table.validate({CONVERTER_TYPE: part} | own, classes):
            key = table[value.name]
            yield ConfigInfo(
                replace(key, name=prefix + key.name), replace(value, name=prefix + value.name)
            )


def _groups(infos: list[ConfigInfo]) -> Iterator[str]:
    for info in infos:
        if info.key and info.key.group:
            yield info.key.group


def _version_not_found(
    plugin: PluginDesc, props: Props, requirement: str, classes: ClassResolver
) -> ConfigInfos:
    """Validate the general keys only: the keys of a missing version are unknown."""
    asked = replace(
        CONNECTOR[CONNECTOR_VERSION],
        default=PLUGIN_VERSION,
        recommender=FixedRecommender((PLUGIN_VERSION,)),
    )
    table = CONNECTOR.updated(ConfigDef(asked))
    fault = version_not_found_message(plugin.class_name, requirement)
    values = {value.name: value for value in table.validate(props, classes)}
    faults = [ConfigFault(CONNECTOR_CLASS, fault), ConfigFault(CONNECTOR_VERSION, fault)]
    values = add_faults(values, faults)
    return ConfigInfos(
        connector_class=props[CONNECTOR_CLASS] or "",
        groups=table.groups,
        configs=tuple(_config_infos(table, values)),
    )

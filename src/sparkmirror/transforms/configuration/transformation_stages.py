"""The stages that a connector's config declares: `transforms`, `predicates`, and their keys.

Faults that the herder's validation reports are a ConfigError, in the order in which Java finds
them. Java finds some only when the task makes the stages; those are a TransformError.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from sparkmirror.config.definition.config_def import ConfigDef, ConfigValue
from sparkmirror.config.definition.cross_key_checks import add_faults
from sparkmirror.config.definition.enrichment import ALIAS_LIST_KEYS, enrich, predicate_faults
from sparkmirror.config.definition.java_classes import resolve_class
from sparkmirror.config.definition.value_types import ParsedValue, Props
from sparkmirror.config.tables.plugins.transforms import PREDICATE_TABLES, TRANSFORMATION_TABLES
from sparkmirror.errors import ConfigError, ConfigFault, TransformError
from sparkmirror.transforms.configuration.plugin_factories import (
    make_predicate,
    make_transformation,
)
from sparkmirror.transforms.data.java_environment import JavaEnvironment
from sparkmirror.transforms.data.java_exceptions import connect_exception
from sparkmirror.transforms.transformation import Predicate
from sparkmirror.transforms.transformation_chain import TransformationChain, TransformationStage

_TRANSFORMS: Final = "transforms"
_PREDICATES: Final = "predicates"
_INTERFACES: Final = {_TRANSFORMS: "Transformation", _PREDICATES: "Predicate"}


def validate_transformations(props: Props) -> dict[str, ConfigValue]:
    """What the herder's validation says about all keys of transformations and predicates."""
    table = enrich(props, resolve_class)
    own = ConfigDef(*(key for key in table if _is_own(key.name)))
    values = {value.name: value for value in own.validate(props)}
    return add_faults(values, predicate_faults(props, values))


def transformation_chain(props: Props, environment: JavaEnvironment) -> TransformationChain:
    """The chain that a config declares.

    Raises ConfigError for what validation reports, and TransformError for what Java reports when
    the task starts.
    """
    values = validate_transformations(props)
    faults = list(_faults_in_java_order(values))
    if faults:
        raise ConfigError(faults)
    predicates = {alias: _make_predicate(alias, values) for alias in _aliases(values, _PREDICATES)}
    return TransformationChain(
        _make_stage(alias, props, values, predicates, environment)
        for alias in _aliases(values, _TRANSFORMS)
    )


def _is_own(key: str) -> bool:
    return key in ALIAS_LIST_KEYS or key.startswith(tuple(f"{one}." for one in ALIAS_LIST_KEYS))


def _faults_in_java_order(values: Mapping[str, ConfigValue]) -> Iterator[ConfigFault]:
    """Yield the first fault of each key: lists first, then classes, then all other keys."""
    classes = {
        f"{key}.{alias}.type": interface
        for key, interface in _INTERFACES.items()
        for alias in _aliases(values, key)
    }
    for name in (
        *_INTERFACES,
        *classes,
        *(key for key in values if key not in classes and key not in _INTERFACES),
    ):
        errors = values[name].errors
        if errors:
            yield ConfigFault(name, _thrown_text(name, errors[0], classes.get(name)))


def _thrown_text(name: str, error: str, interface: str | None) -> str:
    """The text that Java throws: for a class that is missing another one than it reports."""
    if interface is not None and error.startswith("Missing required configuration"):
        return f"Invalid value null for configuration {name}: Not a {interface}"
    return error


def _aliases(values: Mapping[str, ConfigValue], key: str) -> tuple[str, ...]:
    aliases = values[key].value
    assert isinstance(aliases, tuple)
    return aliases


def _plugin(
    prefix: str, values: Mapping[str, ConfigValue], tables: Mapping[str, ConfigDef]
) -> tuple[str, dict[str, ParsedValue]]:
    """The class of an alias, and the values of the keys of that class."""
    class_name = values[f"{prefix}type"].value
    assert isinstance(class_name, str)
    return class_name, {key.name: values[prefix + key.name].value for key in tables[class_name]}


def _make_predicate(alias: str, values: Mapping[str, ConfigValue]) -> Predicate:
    return make_predicate(*_plugin(f"{_PREDICATES}.{alias}.", values, PREDICATE_TABLES))


def _make_stage(
    alias: str,
    props: Props,
    values: Mapping[str, ConfigValue],
    predicates: Mapping[str, Predicate],
    environment: JavaEnvironment,
) -> TransformationStage:
    prefix = f"{_TRANSFORMS}.{alias}."
    class_name, own = _plugin(prefix, values, TRANSFORMATION_TABLES)
    try:
        transformation = make_transformation(class_name, own, environment)
    except TransformError as error:
        raise connect_exception(f"{error.java_class}: {error}", error) from error
    predicate = values[f"{prefix}predicate"].value
    return TransformationStage(
        alias=alias,
        transformation=transformation,
        predicate=predicates[predicate] if isinstance(predicate, str) else None,
        # Java validates the trimmed text but reads the text as it is.
        negate=(props.get(f"{prefix}negate") or "").lower() == "true",
    )

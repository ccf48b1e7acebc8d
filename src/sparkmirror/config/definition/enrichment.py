"""Connect's enrichment: the keys that other keys of a connector add to its table.

`transforms=r` adds the key `transforms.r.type`, whose value in turn adds the keys of the
transformation; likewise `predicates=p`. Names, groups and order are Connect's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from sparkmirror.config.definition.config_def import (
    HIGH,
    MEDIUM,
    REQUIRED,
    ConfigDef,
    ConfigKey,
    ConfigValue,
    Width,
)
from sparkmirror.config.definition.plugin_versions import PLUGIN_VERSION, AvailableVersionValidator
from sparkmirror.config.definition.recommenders import FixedRecommender
from sparkmirror.config.definition.transform_validators import ImplementsInterface
from sparkmirror.config.definition.validators import Validator
from sparkmirror.config.definition.value_types import (
    ClassResolver,
    ParsedValue,
    Props,
    Type,
    split_list,
    trim,
)
from sparkmirror.config.tables.connector_config import PREDICATES_GROUP, TRANSFORMS_GROUP
from sparkmirror.config.tables.plugins.transforms import PREDICATE_TABLES, TRANSFORMATION_TABLES
from sparkmirror.config.tables.source_framework import SOURCE_CONNECTOR_FRAMEWORK
from sparkmirror.errors import ConfigFault

_PREDICATE_KEYS: Final = ConfigDef(
    ConfigKey(
        "negate",
        Type.BOOLEAN,
        False,
        MEDIUM,
        "Whether the transformation is applied where its predicate is false instead.",
    ),
    ConfigKey(
        "predicate",
        Type.STRING,
        None,
        MEDIUM,
        "Alias of the predicate that decides which records are transformed; left out, all are.",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _AliasList:
    """One list of aliases, and the keys that each alias adds."""

    key: str
    group: str
    display_noun: str
    interface: str
    tables: Mapping[str, ConfigDef]
    common_keys: ConfigDef


_ALIAS_LISTS: Final = (
    _AliasList(
        key="transforms",
        group=TRANSFORMS_GROUP,
        display_noun="Transformation",
        interface="org.apache.kafka.connect.transforms.Transformation",
        tables=TRANSFORMATION_TABLES,
        common_keys=_PREDICATE_KEYS,
    ),
    _AliasList(
        key="predicates",
        group=PREDICATES_GROUP,
        display_noun="Predicate",
        interface="org.apache.kafka.connect.transforms.predicates.Predicate",
        tables=PREDICATE_TABLES,
        common_keys=ConfigDef(),
    ),
)


ALIAS_LIST_KEYS: Final = tuple(chain.key for chain in _ALIAS_LISTS)
"""Keys whose values become part of the names of other keys."""


@dataclass(frozen=True, slots=True)
class UnprefixedValidator:
    """Validates under the name without the prefix, as a transformation does in Connect."""

    inner: Validator
    prefix: str

    @property
    def description(self) -> str:
        return self.inner.description

    def validation_error(self, name: str, value: ParsedValue) -> str | None:
        return self.inner.validation_error(name.removeprefix(self.prefix), value)


def enrich(props: Props, classes: ClassResolver) -> ConfigDef:
    """The framework's table for this config, with the added keys at the end."""
    keys = [
        key
        for chain in _ALIAS_LISTS
        for alias in _aliases(props, chain.key)
        for key in _alias_keys(chain, alias, props, classes)
    ]
    # Two aliases can add the same key: t a TimestampConverter's target.type, t.target its type.
    return SOURCE_CONNECTOR_FRAMEWORK + ConfigDef(*{key.name: key for key in keys}.values())


def undeclared_keys(props: Props, classes: ClassResolver) -> frozenset[str]:
    """The keys below `transforms.` and `predicates.` that no alias adds: nothing reads them.

    Empty if an alias or a class comes from a placeholder, which may declare any of them.
    """
    below = tuple(f"{key}." for key in ALIAS_LIST_KEYS)
    written = frozenset(key for key in props if key.startswith(below))
    if not written or any(_has_placeholder(props, key) for key in (*ALIAS_LIST_KEYS, *written)):
        return frozenset()
    return written.difference(enrich(props, classes).names)


def _has_placeholder(props: Props, key: str) -> bool:
    return (key in ALIAS_LIST_KEYS or key.endswith(".type")) and "${" in (props.get(key) or "")


def predicate_faults(props: Props, values: Mapping[str, ConfigValue]) -> Iterator[ConfigFault]:
    """Yield faults of predicates that are negated without a name, or not declared."""
    known = _aliases(props, "predicates")
    for alias in _aliases(props, "transforms"):
        negate, predicate = f"transforms.{alias}.negate", f"transforms.{alias}.predicate"
        if predicate not in values:
            continue
        named = values[predicate].value
        if named is not None and named not in known:
            yield ConfigFault(
                predicate, f"Predicate '{named}' is not defined; add it to predicates."
            )
        if negate in props and named is None:
            yield ConfigFault(
                f"transforms.{alias}.type",
                f"Config '{negate}' was provided but there is no config '{predicate}' defining a "
                "predicate to be negated.",
            )


def _aliases(props: Props, key: str) -> list[str]:
    """The aliases in their order. An empty one counts, as in Connect: it has no type."""
    return list(dict.fromkeys(split_list(props.get(key) or "")))


def _alias_keys(
    chain: _AliasList, alias: str, props: Props, classes: ClassResolver
) -> Iterator[ConfigKey]:
    prefix = f"{chain.key}.{alias}."
    group = f"{chain.group}: {alias}"
    written = props.get(f"{prefix}type")
    class_name = classes(trim(written)) if written else None
    yield from _class_and_version_keys(chain, alias, class_name)
    if class_name is None:
        return
    own = chain.tables.get(class_name, ConfigDef())
    for order, key in enumerate([*own, *chain.common_keys], start=2):
        yield replace(
            key,
            name=f"{prefix}{key.name}",
            validator=UnprefixedValidator(key.validator, prefix) if key.validator else None,
            group=group,
            order=order,
        )


def _class_and_version_keys(
    chain: _AliasList, alias: str, class_name: str | None
) -> tuple[ConfigKey, ConfigKey]:
    """The two keys that every alias has: its class, and the version of the class."""
    prefix, group = f"{chain.key}.{alias}.", f"{chain.group}: {alias}"
    version = PLUGIN_VERSION if class_name in chain.tables else None
    return (
        ConfigKey(
            f"{prefix}type",
            Type.CLASS,
            REQUIRED,
            HIGH,
            f"Class of the {chain.display_noun.lower()} {alias}.",
            validator=ImplementsInterface(chain.interface, tuple(chain.tables)),
            group=group,
            order=0,
            width=Width.LONG,
            display_name=f"{chain.display_noun} type for {alias}",
            recommender=FixedRecommender(tuple(chain.tables)),
        ),
        ConfigKey(
            f"{prefix}plugin.version",
            Type.STRING,
            version,
            HIGH,
            f"Version of the {chain.display_noun.lower()} {alias}. There is one version; leave"
            f" it out.",
            validator=AvailableVersionValidator(class_name or ""),
            group=group,
            order=1,
            width=Width.LONG,
            display_name=f"{chain.display_noun} version for {alias}",
            recommender=FixedRecommender((version,) if version else ()),
        ),
    )

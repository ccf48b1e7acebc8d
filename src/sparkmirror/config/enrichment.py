"""The keys that a connector's other keys bring along.

`transforms=r` makes `transforms.r.type` a key, whose value in turn brings the transformation's own
keys; likewise `predicates=p`. Knows how Connect names, groups and orders them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from sparkmirror.config.definition import (
    HIGH,
    MEDIUM,
    REQUIRED,
    ConfigDef,
    ConfigValue,
    Key,
    Width,
)
from sparkmirror.config.recommenders import Offer
from sparkmirror.config.tables.framework import PREDICATES_GROUP, TRANSFORMS_GROUP
from sparkmirror.config.tables.source_framework import SOURCE_CONNECTOR_FRAMEWORK
from sparkmirror.config.tables.transforms import PREDICATE_TABLES, TRANSFORMATION_TABLES
from sparkmirror.config.validators import ClassOf, Validator
from sparkmirror.config.value import ClassResolver, Props, Type, Value, split, trim
from sparkmirror.config.versions import PLUGIN_VERSION, ExistingVersion
from sparkmirror.errors import Fault

_CONDITION: Final = ConfigDef(
    Key(
        "negate",
        Type.BOOLEAN,
        False,
        MEDIUM,
        "Whether the transformation is applied where its predicate is false instead.",
    ),
    Key(
        "predicate",
        Type.STRING,
        None,
        MEDIUM,
        "Alias of the predicate that decides which records are transformed; left out, all are.",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chain:
    """One list of aliases, and what each alias brings."""

    key: str
    group: str
    noun: str
    interface: str
    tables: Mapping[str, ConfigDef]
    for_each: ConfigDef


_CHAINS: Final = (
    _Chain(
        key="transforms",
        group=TRANSFORMS_GROUP,
        noun="Transformation",
        interface="org.apache.kafka.connect.transforms.Transformation",
        tables=TRANSFORMATION_TABLES,
        for_each=_CONDITION,
    ),
    _Chain(
        key="predicates",
        group=PREDICATES_GROUP,
        noun="Predicate",
        interface="org.apache.kafka.connect.transforms.predicates.Predicate",
        tables=PREDICATE_TABLES,
        for_each=ConfigDef(),
    ),
)


CHAINS: Final = tuple(chain.key for chain in _CHAINS)
"""Keys whose values become part of the names of other keys."""


@dataclass(frozen=True, slots=True)
class Unprefixed:
    """Judges under the short name: a transformation does not know its alias."""

    inner: Validator
    prefix: str

    @property
    def text(self) -> str:
        return self.inner.text

    def fault(self, name: str, value: Value) -> str | None:
        return self.inner.fault(name.removeprefix(self.prefix), value)


def enriched(props: Props, classes: ClassResolver) -> ConfigDef:
    """Build the framework's table for this config: with the keys of its chains at the end."""
    keys = [
        key
        for chain in _CHAINS
        for alias in _aliases(props, chain.key)
        for key in _keys(chain, alias, props, classes)
    ]
    # Two aliases can bring the same key: t a TimestampConverter's target.type, t.target its type.
    return SOURCE_CONNECTOR_FRAMEWORK + ConfigDef(*{key.name: key for key in keys}.values())


def condition_faults(props: Props, values: Mapping[str, ConfigValue]) -> Iterator[Fault]:
    """Find conditions that hang in the air."""
    known = _aliases(props, "predicates")
    for alias in _aliases(props, "transforms"):
        negate, predicate = f"transforms.{alias}.negate", f"transforms.{alias}.predicate"
        if predicate not in values:
            continue
        named = values[predicate].value
        if named is not None and named not in known:
            yield Fault(predicate, f"Predicate '{named}' is not defined; add it to predicates.")
        if negate in props and named is None:
            yield Fault(
                negate,
                f"Config '{negate}' was provided but there is no config '{predicate}' defining a "
                "predicate to be negated.",
            )


def _aliases(props: Props, key: str) -> list[str]:
    return [alias for alias in dict.fromkeys(split(props.get(key) or "")) if alias]


def _keys(chain: _Chain, alias: str, props: Props, classes: ClassResolver) -> Iterator[Key]:
    prefix = f"{chain.key}.{alias}."
    group = f"{chain.group}: {alias}"
    said = props.get(f"{prefix}type")
    class_name = classes(trim(said)) if said else None
    yield from _head(chain, alias, class_name)
    if class_name is None:
        return
    own = chain.tables.get(class_name, ConfigDef())
    for order, key in enumerate([*own, *chain.for_each], start=2):
        yield replace(
            key,
            name=f"{prefix}{key.name}",
            validator=Unprefixed(key.validator, prefix) if key.validator else None,
            group=group,
            order=order,
        )


def _head(chain: _Chain, alias: str, class_name: str | None) -> tuple[Key, Key]:
    """Build the two keys that every alias has: which class, and which version of it."""
    prefix, group = f"{chain.key}.{alias}.", f"{chain.group}: {alias}"
    version = PLUGIN_VERSION if class_name in chain.tables else None
    return (
        Key(
            f"{prefix}type",
            Type.CLASS,
            REQUIRED,
            HIGH,
            f"Class of the {chain.noun.lower()} {alias}.",
            validator=ClassOf(chain.interface, tuple(chain.tables)),
            group=group,
            order=0,
            width=Width.LONG,
            display_name=f"{chain.noun} type for {alias}",
            recommender=Offer(tuple(chain.tables)),
        ),
        Key(
            f"{prefix}plugin.version",
            Type.STRING,
            version,
            HIGH,
            f"Version of the {chain.noun.lower()} {alias}. There is one version; leave it out.",
            validator=ExistingVersion(class_name or ""),
            group=group,
            order=1,
            width=Width.LONG,
            display_name=f"{chain.noun} version for {alias}",
            recommender=Offer((version,) if version else ()),
        ),
    )

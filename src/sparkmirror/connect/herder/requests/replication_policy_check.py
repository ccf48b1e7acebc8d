"""Finds the source and the checkpoint connector of one flow that name remote topics differently.

Their replication policies differ, or the routes of their transformations.

Pure: it compares configs. Such connectors run, as in MirrorMaker 2, but the checkpoints name topics
that the source connector does not write.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from sparkmirror.config.definition.connector_config_validation import CONNECTOR_CLASS
from sparkmirror.config.definition.java_classes import (
    CHECKPOINT_CONNECTOR,
    DEFAULT_REPLICATION_POLICY,
    SOURCE_CONNECTOR,
    resolve_class,
)
from sparkmirror.config.definition.value_types import trim
from sparkmirror.errors import ConfigError, TransformError
from sparkmirror.transforms.configuration.transformation_stages import transformation_chain
from sparkmirror.transforms.data.java_environment import JavaEnvironment
from sparkmirror.transforms.static_route import remote_topic_route

_POLICY: Final = "replication.policy.class"
_TRANSFORMS: Final = "transforms"
_ANY_TIME: Final = JavaEnvironment(now_ms=0)
"""A route by the name of a topic does not depend on the clock."""
_OTHER_KIND: Final = {
    SOURCE_CONNECTOR: CHECKPOINT_CONNECTOR,
    CHECKPOINT_CONNECTOR: SOURCE_CONNECTOR,
}


class _Naming(NamedTuple):
    kind: str
    flow: tuple[str, str]
    policy: str
    route: tuple[str, ...]
    """The regular expressions and replacements of the transformations that route."""


def policy_difference(
    name: str, config: Mapping[str, str | None], others: Mapping[str, Mapping[str, str | None]]
) -> str | None:
    """Return a sentence about the first other connector that does not fit; None if all do."""
    changed = _naming(config)
    for other_name, other_config in sorted(others.items()):
        other = _naming(other_config)
        if (
            other_name == name
            or _OTHER_KIND.get(changed.kind) != other.kind
            or changed.flow != other.flow
        ):
            continue
        if changed.policy != other.policy:
            return (
                f"Connector {name} has {_POLICY} {changed.policy}, and connector {other_name} of "
                f"the same flow has {other.policy}: checkpoints name topics that are not mirrored, "
                f"so group offsets are not synced. Set the same {_POLICY} in both."
            )
        if changed.route != other.route:
            return (
                f"Connectors {name} and {other_name} are of the same flow, and their {_TRANSFORMS} "
                "route topics differently: checkpoints name topics that are not mirrored, so group "
                f"offsets are not synced. Set the same RegexRouters in {_TRANSFORMS} of both."
            )
    return None


def _naming(config: Mapping[str, str | None]) -> _Naming:
    return _Naming(
        _class(config.get(CONNECTOR_CLASS) or ""),
        (
            config.get("source.cluster.alias") or "source",
            config.get("target.cluster.alias") or "target",
        ),
        _class(config.get(_POLICY) or DEFAULT_REPLICATION_POLICY),
        _route(config),
    )


def _route(config: Mapping[str, str | None]) -> tuple[str, ...]:
    if not config.get(_TRANSFORMS):
        return ()
    try:
        return remote_topic_route(transformation_chain(config, _ANY_TIME)).texts
    except (ConfigError, TransformError):
        return ()  # The connector says so when it starts.


def _class(name: str) -> str:
    trimmed = trim(name)
    return resolve_class(trimmed) or trimmed

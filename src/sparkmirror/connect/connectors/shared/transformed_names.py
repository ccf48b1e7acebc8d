"""The names of remote topics under the transformations of a connector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sparkmirror.config.definition.value_types import trim
from sparkmirror.errors import ConfigError, TransformError
from sparkmirror.mirror.topics.replication_policy import ReplicationPolicy
from sparkmirror.mirror.topics.routed_policy import RoutedPolicy
from sparkmirror.transforms.configuration.transformation_stages import transformation_chain
from sparkmirror.transforms.data.java_environment import JavaEnvironment
from sparkmirror.transforms.static_route import remote_topic_route

_TRANSFORMS: Final = "transforms"
_ANY_TIME: Final = JavaEnvironment(now_ms=0)
"""A route by the name of a topic does not depend on the clock."""


def with_static_route(policy: ReplicationPolicy, config: Mapping[str, str]) -> ReplicationPolicy:
    """Return the policy with the route of the config's transformations, if they have one.

    Routes that depend on the record do not count. Raises ConfigError for faults of
    the transformations.
    """
    if not trim(config.get(_TRANSFORMS, "")):
        return policy
    try:
        route = remote_topic_route(transformation_chain(config, _ANY_TIME))
    except TransformError as error:
        raise ConfigError.of(_TRANSFORMS, f"{error.java_class}: {error}") from error
    return policy if route.is_identity else RoutedPolicy(policy, route)

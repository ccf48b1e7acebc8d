"""Replication policies: the name of a remote topic, and the origin that a name shows.

A policy is a pure function of names. It does not know whether a topic exists, so it can be wrong:
with the default policy, every name with a separator looks like a remote topic.

    DefaultReplicationPolicy     orders of A  ->  A.orders   the name shows origin and cycles
    IdentityReplicationPolicy    orders of A  ->  orders     only heartbeats have the prefix
    AwsSampleReplicationPolicy   orders of A  ->  orders     heartbeats too; no upstream topics
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, Self

from sparkmirror.errors import ConfigError

HEARTBEATS_TOPIC = "heartbeats"
DEFAULT_SEPARATOR = "."


class ReplicationPolicy(Protocol):
    """Names of remote topics and internal topics.

    A custom policy inherits from this class and implements the three abstract methods. They must be
    pure and fast, because they are called for every topic at every refresh. For a topic that is not
    a remote topic, `topic_source` and `upstream_topic` return None. `upstream_topic` goes back one
    hop. The other methods behave as in MirrorMaker 2 unless overridden.
    """

    @abstractmethod
    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """Return the remote topic of a source topic."""

    @abstractmethod
    def topic_source(self, topic: str) -> str | None:
        """Return the alias of the cluster from which a remote topic was copied."""

    @abstractmethod
    def upstream_topic(self, topic: str) -> str | None:
        """Return the topic on that cluster from which a remote topic was copied."""

    def original_topic(self, topic: str) -> str:
        """Return the topic at the first hop, which is not a remote topic."""
        seen = {topic}
        while True:
            upstream = self.upstream_topic(topic)
            if upstream is None or upstream in seen:
                return topic
            seen.add(upstream)
            topic = upstream

    def heartbeats_topic(self) -> str:
        """Return the heartbeats topic. It has no separator."""
        return HEARTBEATS_TOPIC

    def offset_syncs_topic(self, alias: str) -> str:
        """Return the offset-syncs topic. `alias` is the other cluster of the flow."""
        return f"mm2-offset-syncs.{alias}.internal"

    def checkpoints_topic(self, alias: str) -> str:
        """Return the checkpoints topic for groups of cluster `alias`."""
        return f"{alias}.checkpoints.internal"

    def is_heartbeats_topic(self, topic: str) -> bool:
        """Return whether a topic has heartbeats of this or another cluster."""
        return self.original_topic(topic) == self.heartbeats_topic()

    def is_checkpoints_topic(self, topic: str) -> bool:
        """Return whether a topic has the suffix of checkpoints topics."""
        return topic.endswith(".checkpoints.internal")

    def is_mm2_internal_topic(self, topic: str) -> bool:
        """Return whether a topic is one of MirrorMaker 2's internal topics."""
        is_mm2 = topic.startswith("mm2") and topic.endswith(".internal")
        return is_mm2 or self.is_checkpoints_topic(topic)

    def is_internal_topic(self, topic: str) -> bool:
        """Return whether a topic is internal to Kafka or MirrorMaker 2, or hidden."""
        return topic.startswith(("__", ".")) or self.is_mm2_internal_topic(topic)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationPolicyConfig:
    """The configuration of a policy.

    If `separator` is None, `internal_separator_enabled` has no effect. `originals` are all
    properties as written, for custom policies.
    """

    source_alias: str | None = None
    separator: str | None = None
    internal_separator_enabled: bool = True
    originals: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultReplicationPolicy(ReplicationPolicy):
    """Prefixes the remote topic with the source's alias, so that the name shows the origin."""

    separator: str = DEFAULT_SEPARATOR
    internal_separator: str = DEFAULT_SEPARATOR

    @classmethod
    def from_config(cls, config: ReplicationPolicyConfig) -> Self:
        """Create the policy of a config."""
        return cls(**_separators(config))

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """Return the topic with alias and separator in front."""
        return f"{source_alias}{self.separator}{topic}"

    def topic_source(self, topic: str) -> str | None:
        """Return the first of at least two parts. Empty parts at the end are ignored."""
        parts = topic.split(self.separator) if self.separator else list(topic)
        while parts and not parts[-1]:
            parts.pop()
        return parts[0] if len(parts) > 1 else None

    def upstream_topic(self, topic: str) -> str | None:
        """Return the name after the source's alias and the separator."""
        source = self.topic_source(topic)
        return None if source is None else topic[len(source) + len(self.separator) :]

    def offset_syncs_topic(self, alias: str) -> str:
        """Join with the internal separator."""
        return self.internal_separator.join(("mm2-offset-syncs", alias, "internal"))

    def checkpoints_topic(self, alias: str) -> str:
        """Join with the internal separator."""
        return self.internal_separator.join((alias, "checkpoints", "internal"))

    def is_checkpoints_topic(self, topic: str) -> bool:
        """Return whether a topic has the suffix of `checkpoints_topic`."""
        return topic.endswith(self.internal_separator.join(("", "checkpoints", "internal")))

    def is_mm2_internal_topic(self, topic: str) -> bool:
        """Return whether a topic has the suffix of this policy's internal topics."""
        is_mm2 = topic.startswith("mm2") and topic.endswith(f"{self.internal_separator}internal")
        return is_mm2 or self.is_checkpoints_topic(topic)


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityReplicationPolicy(DefaultReplicationPolicy):
    """Keeps names, except of topics that end in `heartbeats`: the default policy names those.

    It cannot detect cycles. `source_alias` is None if the policy is used without a flow.
    """

    source_alias: str | None = None

    @classmethod
    def from_config(cls, config: ReplicationPolicyConfig) -> Self:
        """Create the policy of a config."""
        return cls(source_alias=config.source_alias, **_separators(config))

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """Return the same name, except for heartbeats."""
        if _looks_like_heartbeats(topic):
            return DefaultReplicationPolicy.format_remote_topic(self, source_alias, topic)
        return topic

    def topic_source(self, topic: str) -> str | None:
        """Return the flow's source, except for heartbeats."""
        if _looks_like_heartbeats(topic):
            return DefaultReplicationPolicy.topic_source(self, topic)
        return self.source_alias

    def upstream_topic(self, topic: str) -> str | None:
        """Return the same name, except for heartbeats."""
        if _looks_like_heartbeats(topic):
            return DefaultReplicationPolicy.upstream_topic(self, topic)
        return topic


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsSampleReplicationPolicy(DefaultReplicationPolicy):
    """Behaves as the class of Amazon's MSK workshops: keeps all names."""

    source_alias: str

    @classmethod
    def from_config(cls, config: ReplicationPolicyConfig) -> Self:
        """Create the policy of a config. Raises ConfigError without a source alias."""
        if config.source_alias is None:
            key = "source.cluster.alias"
            raise ConfigError.of(key, f"{key} must be set for CustomMM2ReplicationPolicy")
        return cls(source_alias=config.source_alias, **_separators(config))

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """Return the same name."""
        del source_alias
        return topic

    def topic_source(self, topic: str) -> str | None:
        """Return the flow's source for every topic."""
        del topic
        return self.source_alias

    def upstream_topic(self, topic: str) -> str | None:
        """Return None for every topic."""
        del topic
        return None


def _separators(config: ReplicationPolicyConfig) -> dict[str, str]:
    separator = DEFAULT_SEPARATOR if config.separator is None else config.separator
    internal = separator if config.internal_separator_enabled else DEFAULT_SEPARATOR
    return {"separator": separator, "internal_separator": internal}


def _looks_like_heartbeats(topic: str) -> bool:
    return topic.endswith(HEARTBEATS_TOPIC)


def is_internal_with_any_separator(policy: ReplicationPolicy, topic: str) -> bool:
    """Return whether a topic is internal by the policy, or one of Connect's internal topics.

    Connect's topics always have dots (`mm2-configs.A.internal`), but a policy with another
    separator does not recognise them. They must not be copied: one worker would read another's
    state.
    """
    is_connect = topic.startswith("mm2") and topic.endswith(".internal")
    return is_connect or policy.is_internal_topic(topic)


PolicyFactory = Callable[[ReplicationPolicyConfig], ReplicationPolicy]
PolicyResolver = Callable[[str], PolicyFactory]

AWS_SAMPLE_POLICY = "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy"
_MIRROR = "org.apache.kafka.connect.mirror"
_BUILT_IN: Mapping[str, PolicyFactory] = {
    f"{_MIRROR}.DefaultReplicationPolicy": DefaultReplicationPolicy.from_config,
    f"{_MIRROR}.IdentityReplicationPolicy": IdentityReplicationPolicy.from_config,
    AWS_SAMPLE_POLICY: AwsSampleReplicationPolicy.from_config,
}
_SIMPLE_NAMES = {name.rpartition(".")[2]: name for name in _BUILT_IN}


def create_policy(
    class_name: str, config: ReplicationPolicyConfig, resolve: PolicyResolver
) -> ReplicationPolicy:
    """Create the policy of a Java class name, full or simple, or of a custom `module:Class`.

    `resolve` imports a custom class. Raises ConfigError for an unknown name.
    """
    if ":" in class_name:
        return resolve(class_name)(config)
    factory = _BUILT_IN.get(_SIMPLE_NAMES.get(class_name, class_name))
    if factory is None:
        key = "replication.policy.class"
        known = ", ".join(sorted(_SIMPLE_NAMES))
        message = f"{key} names the unknown class {class_name}; use {known}, or module:Class"
        raise ConfigError.of(key, message)
    return factory(config)

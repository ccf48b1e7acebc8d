"""Replication policies: what a topic's copy is called, and what a name says about its origin.

A policy is a pure function of names. It knows no cluster and never asks whether a topic exists, so
it can be wrong about names that people chose: under the default policy every name with a separator
in it looks like a copy.

    DefaultPolicy     orders of A  ->  A.orders       origin and loops can be read from the name
    IdentityPolicy    orders of A  ->  orders         heartbeats alone keep the prefix
    AwsSamplePolicy   orders of A  ->  orders         heartbeats too, and no way back to upstream
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
    """Names of remote topics and of internal ones.

    Contract for people's own: inherit from this class and write the three abstract methods; they
    must be pure and quick, for they are asked about every topic at every refresh. For a topic that
    is not a copy, `topic_source` and `upstream_topic` return None. `upstream_topic` goes back one
    hop. The other methods have MirrorMaker 2's meaning unless overridden.
    """

    @abstractmethod
    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """Name the copy of a source's topic."""

    @abstractmethod
    def topic_source(self, topic: str) -> str | None:
        """Name the cluster that a copy came from."""

    @abstractmethod
    def upstream_topic(self, topic: str) -> str | None:
        """Name the topic, on that cluster, of which this is a copy."""

    def original_topic(self, topic: str) -> str:
        """Go back hop by hop to the topic that is no copy."""
        seen = {topic}
        while True:
            upstream = self.upstream_topic(topic)
            if upstream is None or upstream in seen:
                return topic
            seen.add(upstream)
            topic = upstream

    def heartbeats_topic(self) -> str:
        """Name the topic that heartbeats are written to; no separator applies to it."""
        return HEARTBEATS_TOPIC

    def offset_syncs_topic(self, alias: str) -> str:
        """Name the offset-syncs topic; `alias` is the cluster at the other end of the flow."""
        return f"mm2-offset-syncs.{alias}.internal"

    def checkpoints_topic(self, alias: str) -> str:
        """Name the topic of checkpoints of groups of cluster `alias`."""
        return f"{alias}.checkpoints.internal"

    def is_heartbeats_topic(self, topic: str) -> bool:
        """Tell heartbeats and copies of heartbeats."""
        return self.original_topic(topic) == self.heartbeats_topic()

    def is_checkpoints_topic(self, topic: str) -> bool:
        """Tell a topic of checkpoints by its ending."""
        return topic.endswith(".checkpoints.internal")

    def is_mm2_internal_topic(self, topic: str) -> bool:
        """Tell topics in which MirrorMaker 2 keeps its own state."""
        ours = topic.startswith("mm2") and topic.endswith(".internal")
        return ours or self.is_checkpoints_topic(topic)

    def is_internal_topic(self, topic: str) -> bool:
        """Tell topics that are nobody's data: hidden ones, Kafka's own, MirrorMaker 2's own."""
        return topic.startswith(("__", ".")) or self.is_mm2_internal_topic(topic)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationPolicyConfig:
    """What a policy may be told.

    Without a separator (None) the flag beside it means nothing. `originals` are all properties as
    written, for policies of people's own.
    """

    source_alias: str | None = None
    separator: str | None = None
    internal_separator_enabled: bool = True
    originals: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultReplicationPolicy(ReplicationPolicy):
    """Prefixes the copy with the source's alias, so that names tell where data came from."""

    separator: str = DEFAULT_SEPARATOR
    internal_separator: str = DEFAULT_SEPARATOR

    @classmethod
    def from_config(cls, config: ReplicationPolicyConfig) -> Self:
        """Build it from what the connector was told."""
        return cls(**_separators(config))

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """Put alias and separator in front."""
        return f"{source_alias}{self.separator}{topic}"

    def topic_source(self, topic: str) -> str | None:
        """Take the first of at least two pieces; empty pieces at the end do not count."""
        pieces = topic.split(self.separator) if self.separator else list(topic)
        while pieces and not pieces[-1]:
            pieces.pop()
        return pieces[0] if len(pieces) > 1 else None

    def upstream_topic(self, topic: str) -> str | None:
        """Take what follows the source's alias and the separator."""
        source = self.topic_source(topic)
        return None if source is None else topic[len(source) + len(self.separator) :]

    def offset_syncs_topic(self, alias: str) -> str:
        """Join with the internal separator."""
        return self.internal_separator.join(("mm2-offset-syncs", alias, "internal"))

    def checkpoints_topic(self, alias: str) -> str:
        """Join with the internal separator."""
        return self.internal_separator.join((alias, "checkpoints", "internal"))

    def is_checkpoints_topic(self, topic: str) -> bool:
        """Look for the ending that `checkpoints_topic` makes."""
        return topic.endswith(self.internal_separator.join(("", "checkpoints", "internal")))

    def is_mm2_internal_topic(self, topic: str) -> bool:
        """Look for the ending that this policy's internal topics have."""
        ours = topic.startswith("mm2") and topic.endswith(f"{self.internal_separator}internal")
        return ours or self.is_checkpoints_topic(topic)


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityReplicationPolicy(DefaultReplicationPolicy):
    """Keeps names. Whatever ends in `heartbeats` is named by the default rules all the same.

    Data that runs in a circle cannot be noticed. `source_alias` is None where only names are asked
    about and no flow is known.
    """

    source_alias: str | None = None

    @classmethod
    def from_config(cls, config: ReplicationPolicyConfig) -> Self:
        """Build it from what the connector was told."""
        return cls(source_alias=config.source_alias, **_separators(config))

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """Keep the name, but for heartbeats."""
        if _looks_like_heartbeats(topic):
            return DefaultReplicationPolicy.format_remote_topic(self, source_alias, topic)
        return topic

    def topic_source(self, topic: str) -> str | None:
        """Say that everything comes from the flow's source, but for heartbeats."""
        if _looks_like_heartbeats(topic):
            return DefaultReplicationPolicy.topic_source(self, topic)
        return self.source_alias

    def upstream_topic(self, topic: str) -> str | None:
        """Say that the name is the same upstream, but for heartbeats."""
        if _looks_like_heartbeats(topic):
            return DefaultReplicationPolicy.upstream_topic(self, topic)
        return topic


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsSampleReplicationPolicy(DefaultReplicationPolicy):
    """Answers as the class of Amazon's MSK workshops does: names are kept, all of them."""

    source_alias: str

    @classmethod
    def from_config(cls, config: ReplicationPolicyConfig) -> Self:
        """Build it from what the connector was told; the alias is a must."""
        if config.source_alias is None:
            key = "source.cluster.alias"
            raise ConfigError.of(key, f"{key} must be set for CustomMM2ReplicationPolicy")
        return cls(source_alias=config.source_alias, **_separators(config))

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """Keep the name."""
        del source_alias
        return topic

    def topic_source(self, topic: str) -> str | None:
        """Say that everything comes from the flow's source."""
        del topic
        return self.source_alias

    def upstream_topic(self, topic: str) -> str | None:
        """Never say."""
        del topic
        return None


def _separators(config: ReplicationPolicyConfig) -> dict[str, str]:
    separator = DEFAULT_SEPARATOR if config.separator is None else config.separator
    internal = separator if config.internal_separator_enabled else DEFAULT_SEPARATOR
    return {"separator": separator, "internal_separator": internal}


def _looks_like_heartbeats(topic: str) -> bool:
    return topic.endswith(HEARTBEATS_TOPIC)


def is_internal_with_any_separator(policy: ReplicationPolicy, topic: str) -> bool:
    """Ask the policy, and know Connect's own topics even if the policy does not.

    They are always spelled with dots (`mm2-configs.A.internal`), but a policy with another
    separator looks for that one only. Copying them would feed one worker's state to another.
    """
    connects = topic.startswith("mm2") and topic.endswith(".internal")
    return connects or policy.is_internal_topic(topic)


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
    """Build the policy of a Java name, full or simple, or of people's own `module:Class`.

    `resolve` turns the latter into something to call; importing is not this room's business.
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

"""Which topics and partitions are read: named, by a pattern, or assigned. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sparkmirror.datasource.offset_positions import parse_assignment
from sparkmirror.errors import ConfigError, JavaRegexError
from sparkmirror.javaregex.pattern import compile_pattern_list
from sparkmirror.model import TopicPartition

SUBSCRIBE, SUBSCRIBE_PATTERN, ASSIGN = "subscribe", "subscribePattern", "assign"
SUBSCRIPTION_OPTIONS = (SUBSCRIBE, SUBSCRIBE_PATTERN, ASSIGN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """One of the three is set."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    assigned: frozenset[TopicPartition] = frozenset()
    named_topics: frozenset[str] = field(init=False, repr=False, compare=False)
    """The topics that must exist."""

    def __post_init__(self) -> None:
        """Collect the names of topics."""
        named = frozenset(self.topics) | {partition.topic for partition in self.assigned}
        object.__setattr__(self, "named_topics", named)

    def includes(self, topic: str, *, is_internal: bool) -> bool:
        """Return whether a topic of the cluster is read. A pattern matches no internal topic."""
        if self.pattern is None:
            return topic in self.named_topics
        return not is_internal and compile_pattern_list([self.pattern]).matches(topic)

    def has(self, partition: TopicPartition) -> bool:
        """Return whether a partition of a topic that is not internal is read."""
        if self.assigned:
            return partition in self.assigned
        return self.includes(partition.topic, is_internal=False)

    def select(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions of the topics that are read."""
        if not self.assigned:
            return sorted(partitions)
        return sorted(self.assigned.intersection(partitions))


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscribedPartitions:
    """The partitions of a subscription that exist, and the ids of the topics that have one."""

    partitions: list[TopicPartition]
    topic_ids: Mapping[str, str] = field(default_factory=dict)


class SourceLogs(Protocol):
    """The logs of a subscription: `subscribed_logs`, or those of a test. Raises ClusterError."""

    @property
    def cluster(self) -> str:
        """The name of the cluster in errors."""
        ...

    def partitions(
        self, expected: Collection[TopicPartition] = (), *, is_recent: bool = False
    ) -> SubscribedPartitions:
        """Return the partitions that exist. Waits a moment for those that are expected."""
        ...

    def require_named(self, partitions: Collection[TopicPartition]) -> None:
        """Raise the error of the first topic or partition that is named but not among these."""
        ...

    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offsets of those partitions that exist."""
        ...

    def latest(
        self, partitions: Iterable[TopicPartition], read: Mapping[TopicPartition, int] | None = None
    ) -> dict[TopicPartition, int]:
        """Return the ends of those that exist. Waits for logs that end before what was read."""
        ...

    def at_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """Return the first offset at or after each time in ms; None behind the last record."""
        ...


def parse_subscription(options: Mapping[str, str]) -> Subscription:
    """Read the one option of the three that is set. Raises ConfigError."""
    found = [name for name in SUBSCRIPTION_OPTIONS if name in options]
    if len(found) != 1:
        what = f"{' and '.join(found)} are set" if found else "none of them is set"
        names = ", ".join(SUBSCRIPTION_OPTIONS)
        raise ConfigError.of(SUBSCRIBE, f"set exactly one of {names}: {what}")
    (name,) = found
    text = options[name]
    if name == ASSIGN:
        return Subscription(assigned=frozenset(parse_assignment(ASSIGN, text)))
    if name == SUBSCRIBE_PATTERN:
        return Subscription(pattern=_checked_pattern(text))
    topics = tuple(dict.fromkeys(filter(None, map(str.strip, text.split(",")))))
    if not topics:
        raise ConfigError.of(SUBSCRIBE, f"{SUBSCRIBE} names no topic; name at least one")
    return Subscription(topics=topics)


def _checked_pattern(text: str) -> str:
    pattern = text.strip()
    try:
        compile_pattern_list([pattern])
    except JavaRegexError as error:
        raise ConfigError.of(SUBSCRIBE_PATTERN, f"{SUBSCRIBE_PATTERN}: {error}") from error
    if not pattern:
        raise ConfigError.of(SUBSCRIBE_PATTERN, f"{SUBSCRIBE_PATTERN} is empty; write a pattern")
    return pattern

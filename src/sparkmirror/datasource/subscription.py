"""Which topics and partitions are read: named, by a pattern, or assigned. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

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
    assigned: tuple[TopicPartition, ...] = ()

    @property
    def named_topics(self) -> frozenset[str]:
        """The topics that must exist."""
        return frozenset(self.topics) | {partition.topic for partition in self.assigned}

    def includes(self, topic: str, *, is_internal: bool) -> bool:
        """Return whether a topic of the cluster is read. A pattern matches no internal topic."""
        if self.pattern is None:
            return topic in self.named_topics
        return not is_internal and compile_pattern_list([self.pattern]).matches(topic)

    def select(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions of the topics that are read."""
        if not self.assigned:
            return sorted(partitions)
        return sorted(set(partitions) & set(self.assigned))


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
        return Subscription(assigned=parse_assignment(ASSIGN, text))
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

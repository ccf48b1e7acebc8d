"""Which topics, groups and topic settings people want mirrored, by name alone.

The default filters take lists of Java patterns: a name must match one of `include` as a whole and
none of `exclude`. What may never be mirrored, whatever people want, is `selection`'s business.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, Self

from sparkmirror.javaregex.pattern import NameMatcher, compile_pattern_list


class TopicFilter(Protocol):
    """Says whether a topic is wanted. Must be pure: it is asked at every refresh."""

    def should_replicate_topic(self, topic: str) -> bool:
        """Judge one name."""


class GroupFilter(Protocol):
    """Says whether a consumer group's offsets are wanted. Must be pure."""

    def should_replicate_group(self, group: str) -> bool:
        """Judge one group id."""


class ConfigPropertyFilter(Protocol):
    """Says which topic settings are copied. Must be pure."""

    def should_replicate_config_property(self, name: str) -> bool:
        """Judge one setting."""

    def should_replicate_source_default(self, name: str) -> bool:
        """Say whether a setting left at the source's default is copied as a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _PatternFilter:
    """Two lists of patterns. Excludes win."""

    include: NameMatcher
    exclude: NameMatcher

    @classmethod
    def of(cls, include: Iterable[str], exclude: Iterable[str]) -> Self:
        """Compile the lists; raises JavaRegexError."""
        return cls(include=compile_pattern_list(include), exclude=compile_pattern_list(exclude))

    def matches(self, name: str) -> bool:
        return self.include.matches(name) and not self.exclude.matches(name)


class DefaultTopicFilter(_PatternFilter):
    """`topics` and `topics.exclude`."""

    __slots__ = ()

    def should_replicate_topic(self, topic: str) -> bool:
        """Judge one name."""
        return self.matches(topic)


class DefaultGroupFilter(_PatternFilter):
    """`groups` and `groups.exclude`."""

    __slots__ = ()

    def should_replicate_group(self, group: str) -> bool:
        """Judge one group id."""
        return self.matches(group)


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultConfigPropertyFilter:
    """`config.properties.exclude`, and `use.defaults.from`, of which only `source` means much."""

    exclude: NameMatcher
    copy_source_defaults: bool

    @classmethod
    def of(cls, exclude: Iterable[str], *, use_defaults_from: str = "target") -> Self:
        """Compile the list; raises JavaRegexError."""
        return cls(
            exclude=compile_pattern_list(exclude),
            copy_source_defaults=use_defaults_from == "source",
        )

    def should_replicate_config_property(self, name: str) -> bool:
        """Judge one setting."""
        return not self.exclude.matches(name)

    def should_replicate_source_default(self, name: str) -> bool:
        """Answer for all settings alike."""
        del name
        return self.copy_source_defaults

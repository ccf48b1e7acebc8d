"""Filters for topics, groups and topic configs, by name.

The default filters have lists of Java patterns: a name must match one of `include` as a whole and
none of `exclude`. `topic_selection` excludes topics that must never be mirrored.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, Self

from sparkmirror.javaregex.pattern import NameMatcher, compile_pattern_list


class TopicFilter(Protocol):
    """Selects topics. Must be pure: it is called for every topic at every refresh."""

    def should_replicate_topic(self, topic: str) -> bool:
        """Return whether a topic is selected."""


class GroupFilter(Protocol):
    """Selects consumer groups. Must be pure."""

    def should_replicate_group(self, group: str) -> bool:
        """Return whether a group is selected."""


class ConfigPropertyFilter(Protocol):
    """Selects the topic configs to copy. Must be pure."""

    def should_replicate_config_property(self, name: str) -> bool:
        """Return whether a topic config is selected."""

    def should_replicate_source_default(self, name: str) -> bool:
        """Return whether a topic config at the source's default is copied as a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _PatternFilter:
    """Two lists of patterns. `exclude` wins."""

    include: NameMatcher
    exclude: NameMatcher

    @classmethod
    def of(cls, include: Iterable[str], exclude: Iterable[str]) -> Self:
        """Compile the lists. Raises JavaRegexError."""
        return cls(include=compile_pattern_list(include), exclude=compile_pattern_list(exclude))

    def matches(self, name: str) -> bool:
        return self.include.matches(name) and not self.exclude.matches(name)


class DefaultTopicFilter(_PatternFilter):
    """`topics` and `topics.exclude`."""

    __slots__ = ()

    def should_replicate_topic(self, topic: str) -> bool:
        """Return whether the topic matches."""
        return self.matches(topic)


class DefaultGroupFilter(_PatternFilter):
    """`groups` and `groups.exclude`."""

    __slots__ = ()

    def should_replicate_group(self, group: str) -> bool:
        """Return whether the group matches."""
        return self.matches(group)


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultConfigPropertyFilter:
    """`config.properties.exclude`, and whether `use.defaults.from` is `source`."""

    exclude: NameMatcher
    copy_source_defaults: bool

    @classmethod
    def of(cls, exclude: Iterable[str], *, use_defaults_from: str = "target") -> Self:
        """Compile the list. Raises JavaRegexError."""
        return cls(
            exclude=compile_pattern_list(exclude),
            copy_source_defaults=use_defaults_from == "source",
        )

    def should_replicate_config_property(self, name: str) -> bool:
        """Return whether the topic config is not excluded."""
        return not self.exclude.matches(name)

    def should_replicate_source_default(self, name: str) -> bool:
        """Return the same for all topic configs."""
        del name
        return self.copy_source_defaults

"""The groups of the source that a checkpoint connector follows.

Listing groups is cheap, listing all their offsets is not. So groups are listed often; all offsets
are listed if the groups have changed, and otherwise from time to time, because an existing group
may commit on a mirrored topic later. A new group often has members before it has an offset: its
offsets are listed with each refresh, until it has one or is no longer new. So are those of a group
whose offsets could not be read.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from sparkmirror.cluster.groups import list_consumer_group_offsets, list_consumer_groups
from sparkmirror.config.warn_once import warn_once
from sparkmirror.connect.connectors.checkpoint.checkpoint_config import MirrorCheckpointConfig
from sparkmirror.connect.connectors.shared.errors_by_cause import describe_errors_by_cause
from sparkmirror.errors import ClusterError, UnsupportedByBroker
from sparkmirror.mirror.offsets.group_selection import groups_to_replicate, groups_with_offsets
from sparkmirror.mirror.topics.task_assignment import sorted_unique
from sparkmirror.wire.net.routing import Router

log = logging.getLogger(__name__)

OFFSETS_QUERY_INTERVAL_S = 30.0
NEW_GROUP_S = 300.0
"""A group counts as new for so long after it was listed first."""
_MAX_SHOWN = 5


class CheckpointGroups:
    """The known groups of one flow. Belongs to one thread at a time."""

    def __init__(
        self,
        config: MirrorCheckpointConfig,
        source: Router,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config = config
        self._source = source
        self._clock = clock
        self._at_source: frozenset[str] | None = None
        self._listed: frozenset[str] = frozenset()
        self._invalid_ids: frozenset[str] = frozenset()
        self._known: frozenset[str] | None = None
        self._next_offsets_query_at = float("-inf")
        self._listed_first_at: dict[str, float] = {}
        self._unreadable: dict[str, ClusterError] = {}
        self._committed_topics: dict[str, frozenset[str]] = {}
        """The topics of listed groups that have committed no offset on a mirrored topic."""
        self.refresh_took_s = 0.0
        """How long the last refresh took."""

    @property
    def groups(self) -> tuple[str, ...] | None:
        """The groups that get checkpoints, sorted; None before the first refresh."""
        return None if self._known is None else sorted_unique(self._known)

    @property
    def problem(self) -> str:
        """The groups whose offsets could not be read, one text per cause; empty if there is none.

        They may be missing among `groups`.
        """
        texts = describe_errors_by_cause(self._unreadable, "group")
        return texts and f"offsets of groups cannot be read: {texts}"

    def exclusion_reason(self, group: str) -> str:
        """Return why a group gets no checkpoints, from the last refresh. Any thread may call."""
        alias, at_source = self._config.shared.flow.source, self._at_source
        if at_source is None:
            return f"the groups of {alias} are not listed yet"
        if not self._config.group_filter.should_replicate_group(group):
            return "groups and groups.exclude exclude it"
        if "," in group:
            return "its id contains a comma, so it cannot be assigned to a task"
        if group not in at_source:
            return (
                f"{alias} lists no such group: it has not committed an offset there, or the mirror"
                " lacks the right Describe on it"
            )
        if group in self._unreadable:
            return str(self._unreadable[group])
        if group in (self._known or ()):
            return "its first checkpoints follow soon"
        topics = self._committed_topics.get(group)
        if not topics:
            return "it has not committed an offset yet"
        return (
            "it has committed offsets only on topics that are not mirrored:"
            f" {_format_topics(topics)}"
        )

    def refresh(self) -> bool:
        """List the groups again; return whether task configs must change. Blocks."""
        began = self._clock()
        has_changed = self._find_groups()
        self.refresh_took_s = self._clock() - began
        return has_changed

    def _find_groups(self) -> bool:
        timeout_s = self._config.shared.admin_timeout_s
        try:
            found_groups = list_consumer_groups(self._source, timeout_s=timeout_s)
        except UnsupportedByBroker as error:
            flow = self._config.shared.flow
            warn_once(log, f"{error}, so no group of {flow.source} gets checkpoints ({flow})")
            found_groups = ()
        self._at_source = frozenset(group.group_id for group in found_groups)
        listed = groups_to_replicate(self._at_source, self._config.group_filter)
        listed = self._without_invalid_ids(listed)
        new_groups = self._new_groups_without_offsets(listed)
        if listed != self._listed or self._clock() >= self._next_offsets_query_at:
            found = self._with_offsets(listed, listed, timeout_s)
            self._next_offsets_query_at = self._clock() + OFFSETS_QUERY_INTERVAL_S
        elif again := new_groups | (self._unreadable.keys() & listed):
            found = self._with_offsets(listed, frozenset(again), timeout_s)
        else:
            return False
        self._listed = listed
        if found == self._known:
            return False
        before = self._known or frozenset()
        log.info(
            "Found %d consumer groups for %s. %d are new. %d were removed.",
            len(found), self._config.shared.flow, len(found - before), len(before - found),
        )  # fmt: skip
        if not found:
            log.info(
                "No group of %s gets checkpoints yet: %d groups match groups and groups.exclude,"
                " and none of them has committed an offset on a mirrored topic",
                self._config.shared.flow.source, len(listed),
            )  # fmt: skip
        self._known = found
        return True

    def _without_invalid_ids(self, listed: frozenset[str]) -> frozenset[str]:
        """Remove ids with a comma, which a task's config cannot contain. Logs each once."""
        invalid = frozenset(group for group in listed if "," in group)
        for group in sorted(invalid - self._invalid_ids):
            log.warning(
                "Group %r gets no checkpoints: its id contains a comma; choose another id", group
            )
        self._invalid_ids = invalid
        return listed - invalid

    def _new_groups_without_offsets(self, listed: frozenset[str]) -> frozenset[str]:
        """Return the new groups that have not committed an offset on a mirrored topic yet."""
        now, first_at = self._clock(), self._listed_first_at
        self._listed_first_at = {group: first_at.get(group, now) for group in listed}
        return frozenset(
            group
            for group in listed - (self._known or frozenset())
            if now < self._listed_first_at[group] + NEW_GROUP_S
        )

    def _with_offsets(
        self, listed: frozenset[str], queried: frozenset[str], timeout_s: float
    ) -> frozenset[str]:
        """Return groups with offsets on mirrored topics.

        A group that is unreadable, or not queried, stays as it was.
        """
        committed = list_consumer_group_offsets(self._source, queried, timeout_s=timeout_s)
        readable = {
            group: [partition for partition, offset in answer.items() if offset is not None]
            for group, answer in committed.items()
            if not isinstance(answer, ClusterError)
        }
        self._unreadable = {
            group: error
            for group, error in (self._unreadable | committed).items()
            if group in listed and isinstance(error, ClusterError)
        }
        if self._unreadable and not readable and queried == listed:
            raise next(iter(self._unreadable.values()))
        found = groups_with_offsets(readable, self._config.topic_filter)
        topics = {
            group: frozenset(partition.topic for partition in partitions)
            for group, partitions in readable.items()
            if group not in found
        }
        self._committed_topics = {
            group: names
            for group, names in (self._committed_topics | topics).items()
            if group in listed and group not in found
        }
        return found | ((self._known or frozenset()) & (listed - readable.keys()))


def _format_topics(topics: frozenset[str]) -> str:
    names = sorted(topics)
    more = len(names) - _MAX_SHOWN
    return ", ".join(names[:_MAX_SHOWN]) + (f" and {more} more" if more > 0 else "")

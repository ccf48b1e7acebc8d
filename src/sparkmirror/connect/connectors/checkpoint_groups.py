"""Which groups of the source a checkpoint connector follows: looked for again and again.

Listing groups is cheap, asking for all their offsets is not. So groups are listed often; offsets
are asked for when the list has changed, and otherwise from time to time, because a group that
exists may commit on a mirrored topic later.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from sparkmirror.cluster.groups import committed_offsets, list_groups
from sparkmirror.connect.connectors.checkpoint_config import CheckpointConfig
from sparkmirror.errors import ClusterError
from sparkmirror.mirror.groups import groups_with_offsets, wanted_groups
from sparkmirror.mirror.tasks import in_order
from sparkmirror.wire.routing import Router

log = logging.getLogger(__name__)

ASK_FOR_OFFSETS_EVERY_S = 30.0
_MOST_SHOWN = 5


class CheckpointGroups:
    """The groups of one flow, as known. Belongs to one thread at a time."""

    def __init__(
        self,
        config: CheckpointConfig,
        source: Router,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config = config
        self._source = source
        self._clock = clock
        self._listed: frozenset[str] = frozenset()
        self._nameless: frozenset[str] = frozenset()
        self._known: frozenset[str] | None = None
        self._ask_again_at = float("-inf")
        self.look_took_s = 0.0
        """How long the last look took."""

    @property
    def groups(self) -> tuple[str, ...] | None:
        """The groups worth checkpoints, in order; None until they were looked for."""
        return None if self._known is None else in_order(self._known)

    def refresh(self) -> bool:
        """Look again; return whether tasks must be given other groups."""
        began = self._clock()
        has_changed = self._look()
        self.look_took_s = self._clock() - began
        return has_changed

    def _look(self) -> bool:
        timeout_s = self._config.shared.admin_timeout_s
        listed = wanted_groups(
            (group.group_id for group in list_groups(self._source, timeout_s=timeout_s)),
            self._config.group_filter,
        )
        listed = self._nameable(listed)
        if listed == self._listed and self._clock() < self._ask_again_at:
            return False
        found = self._with_offsets(listed, timeout_s)
        self._listed = listed
        self._ask_again_at = self._clock() + ASK_FOR_OFFSETS_EVERY_S
        if found == self._known:
            return False
        before = self._known or frozenset()
        log.info(
            "Found %d consumer groups for %s. %d are new. %d were removed.",
            len(found), self._config.shared.flow, len(found - before), len(before - found),
        )  # fmt: skip
        self._known = found
        return True

    def _nameable(self, listed: frozenset[str]) -> frozenset[str]:
        """Leave out ids that would fall apart in a task's config, and say so once."""
        nameless = frozenset(group for group in listed if "," in group)
        for group in sorted(nameless - self._nameless):
            log.warning("Group %r is not followed: its id holds a comma; choose another id", group)
        self._nameless = nameless
        return listed - nameless

    def _with_offsets(self, listed: frozenset[str], timeout_s: float) -> frozenset[str]:
        """Keep groups with offsets on mirrored topics. One that cannot be read stays as it was."""
        committed = committed_offsets(self._source, listed, timeout_s=timeout_s)
        readable = {
            group: [partition for partition, offset in answer.items() if offset is not None]
            for group, answer in committed.items()
            if not isinstance(answer, ClusterError)
        }
        unreadable = [answer for answer in committed.values() if isinstance(answer, ClusterError)]
        if unreadable and not readable:
            raise unreadable[0]
        found = groups_with_offsets(readable, self._config.topic_filter)
        return found | ((self._known or frozenset()) & (listed - readable.keys()))


def why_not_followed(config: CheckpointConfig, source: Router, group: str) -> str:
    """Say in a sentence why nothing is known of a group, asking the source. For people."""
    alias = config.shared.flow.source
    if not config.group_filter.should_replicate_group(group):
        return "groups and groups.exclude leave it out"
    if "," in group:
        return "its id holds a comma, so it cannot be assigned to a task"
    committed = committed_offsets(source, [group])[group]
    if isinstance(committed, ClusterError):
        return str(committed)
    topics = {partition.topic for partition, offset in committed.items() if offset is not None}
    if not topics:
        return f"no such group has committed an offset on {alias}"
    if not any(config.topic_filter.should_replicate_topic(topic) for topic in topics):
        return f"it has committed offsets only on topics that are not mirrored: {_shown(topics)}"
    return "it is about to be followed"


def _shown(topics: set[str]) -> str:
    names = sorted(topics)
    more = len(names) - _MOST_SHOWN
    return ", ".join(names[:_MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")

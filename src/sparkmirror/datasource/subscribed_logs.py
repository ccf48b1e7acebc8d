"""The partitions of a subscription, and where their logs begin and end now.

Brokers learn of changes one after another, and a former leader may answer for a while. So what is
missing or shorter than expected is asked for again before it is believed:

    topic or partition is not listed     NEW_TOPIC_WAIT_S
    leader does not know a partition     as long as metadata lists it, up to TIMEOUT_S
    log ends before what was read        SHORTER_WAIT_S

Blocks; belongs to the thread of its router.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from uuid import UUID

from sparkmirror.backoff import Backoff, seconds_left
from sparkmirror.cluster.describe_topics import (
    TopicDescription,
    describe_topic,
    describe_topics,
    find_hidden_topics,
)
from sparkmirror.datasource.offset_positions import PartitionOffsets
from sparkmirror.datasource.subscription import SubscribedPartitions, Subscription
from sparkmirror.errors import ClusterUnavailable, TopicMissing
from sparkmirror.model import TopicPartition
from sparkmirror.wire.net.leader_calls import NEW_TOPIC_WAIT_S
from sparkmirror.wire.net.routing import LeaderOf, Router
from sparkmirror.wire.protocol.apis import LIST_OFFSETS
from sparkmirror.wire.protocol.error_code_exceptions import error_for_code
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.topics.offsets import EARLIEST, LATEST, list_offsets

TIMEOUT_S = 60.0
"""How long the brokers may take, as with Java's `default.api.timeout.ms`."""
SHORTER_WAIT_S = 10.0
"""How long a new leader may take to know the end of its log."""
LISTING_AGE_S = 2.0
"""How old a listing of topics may be: Spark asks a stream without new records every few ms."""
_NO_IDS = ("None", str(UUID(int=0)))


class SubscribedLogs:
    """Answers questions about the partitions that a source reads. Raises ClusterError."""

    def __init__(
        self,
        router: Router,
        subscription: Subscription,
        *,
        read_committed: bool,
        timeout_s: float = TIMEOUT_S,
        new_topic_wait_s: float = NEW_TOPIC_WAIT_S,
        shorter_wait_s: float = SHORTER_WAIT_S,
        listing_age_s: float = LISTING_AGE_S,
    ) -> None:
        self._router = router
        self._subscription = subscription
        self._read_committed = read_committed
        self._timeout_s = timeout_s
        self._new_topic_wait_s = new_topic_wait_s
        self._shorter_wait_s = shorter_wait_s
        self._listing_age_s = listing_age_s
        self._listed = SubscribedPartitions(partitions=[])
        self._listed_at = float("-inf")

    @property
    def cluster(self) -> str:
        """The name of the cluster in errors."""
        return self._router.cluster

    def partitions(
        self, expected: Collection[TopicPartition] = (), *, is_recent: bool = False
    ) -> SubscribedPartitions:
        """Return the partitions that exist. Waits a moment for those that are expected.

        The answer may be some seconds old, unless something is missing or it must be recent.
        Raises NotAuthorized if the user may not describe the topic of an expected partition.
        """
        is_old = time.monotonic() > self._listed_at + self._listing_age_s
        if is_old or is_recent or not set(expected) <= set(self._listed.partitions):
            self._listed = self._list_topics(expected)
            self._listed_at = time.monotonic()
        return self._listed

    def _list_topics(self, expected: Collection[TopicPartition]) -> SubscribedPartitions:
        subscription = self._subscription
        names = None if subscription.pattern is not None else subscription.named_topics
        deadline, backoff = time.monotonic() + self._new_topic_wait_s, Backoff()
        while True:
            found = describe_topics(self._router, names, timeout_s=self._timeout_s)
            listed = self._select(found.values())
            missing = (subscription.assigned | set(expected)) - set(listed.partitions)
            topics = subscription.named_topics - found.keys()
            if not (missing or topics) or time.monotonic() > deadline:
                break
            self._router.pause(backoff.next_delay_s())
        lost = {partition.topic for partition in missing} - found.keys()
        for error in find_hidden_topics(self._router, lost, timeout_s=self._timeout_s).values():
            raise error
        return listed

    def _select(self, topics: Collection[TopicDescription]) -> SubscribedPartitions:
        read = [
            topic
            for topic in topics
            if self._subscription.includes(topic.name, is_internal=topic.is_internal)
        ]
        return SubscribedPartitions(
            partitions=self._subscription.select(
                TopicPartition(topic.name, partition.index)
                for topic in read
                for partition in topic.partitions
            ),
            topic_ids={
                topic.name: topic.topic_id for topic in read if topic.topic_id not in _NO_IDS
            },
        )

    def require_named(self, partitions: Collection[TopicPartition]) -> None:
        """Raise the error of the first topic or partition that is named but not among these."""
        topics = {partition.topic for partition in partitions}
        for topic in sorted(self._subscription.named_topics - topics):
            describe_topic(self._router, topic, timeout_s=self._timeout_s)
            raise ClusterUnavailable(
                self.cluster, f"{topic} was not known to all brokers; start the query again"
            )
        for partition in sorted(self._subscription.assigned - set(partitions)):
            raise TopicMissing(
                self.cluster, f"{partition} does not exist; assign a partition of the topic"
            )

    def earliest(self, partitions: Iterable[TopicPartition]) -> PartitionOffsets:
        """Return the first offsets of those partitions that exist."""
        return self._list(dict.fromkeys(partitions, EARLIEST))

    def latest(
        self, partitions: Iterable[TopicPartition], read: Mapping[TopicPartition, int] | None = None
    ) -> PartitionOffsets:
        """Return the ends of those partitions that exist: all that a consumer may read now.

        Waits a while for logs that end before what was `read`.
        """
        read = read or {}
        ends = self._list(dict.fromkeys(partitions, LATEST))
        deadline, backoff = time.monotonic() + self._shorter_wait_s, Backoff()
        while shorter := [p for p, end in ends.items() if end < read.get(p, 0)]:
            if time.monotonic() > deadline:
                break
            self._router.pause(backoff.next_delay_s())
            for partition in shorter:
                self._router.invalidate(LeaderOf(partition))
            ends |= self._list(dict.fromkeys(shorter, LATEST))
        return ends

    def at_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """Return the first offset at or after each time in ms; None behind the last record."""
        offsets = self._list(times)
        return {partition: None if at < 0 else at for partition, at in offsets.items()}

    def _list(self, times: Mapping[TopicPartition, int]) -> PartitionOffsets:
        """Ask for offsets. A partition without one does not exist any more."""
        deadline = time.monotonic() + self._timeout_s
        offsets: PartitionOffsets = {}
        waiting = dict(times)
        while waiting:
            found = list_offsets(
                self._router,
                waiting,
                read_committed=self._read_committed,
                timeout_s=seconds_left(deadline),
            )
            for partition, (code, listed) in found.items():
                if listed is not None:
                    offsets[partition] = listed.offset
                elif code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    raise error_for_code(self.cluster, LIST_OFFSETS.name, code, str(partition))
            existing = self._existing(
                partition for partition in waiting if partition not in offsets
            )
            waiting = {partition: times[partition] for partition in existing}
            if waiting and time.monotonic() > deadline:
                raise ClusterUnavailable(
                    self.cluster,
                    f"{LIST_OFFSETS.name}: the leader of {min(waiting)} does not know it; check"
                    " whether all brokers are up",
                )
        return offsets

    def _existing(self, partitions: Iterable[TopicPartition]) -> set[TopicPartition]:
        """Return those of these partitions that metadata lists."""
        wanted = set(partitions)
        names = {partition.topic for partition in wanted}
        topics = describe_topics(self._router, names, timeout_s=self._timeout_s).values()
        return wanted & {
            TopicPartition(topic.name, partition.index)
            for topic in topics
            for partition in topic.partitions
        }

"""The partitions of a subscription, and where their logs begin and end now.

Blocks; belongs to the thread of its router.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable

from sparkmirror.backoff import Backoff
from sparkmirror.cluster.describe_topics import describe_topic, describe_topics
from sparkmirror.datasource.offset_positions import PartitionOffsets
from sparkmirror.datasource.subscription import Subscription
from sparkmirror.errors import TopicMissing
from sparkmirror.model import TopicPartition
from sparkmirror.wire.net.leader_calls import NEW_TOPIC_WAIT_S
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.apis import LIST_OFFSETS
from sparkmirror.wire.protocol.error_code_exceptions import error_for_code
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.topics.offsets import EARLIEST, LATEST, list_offsets

TIMEOUT_S = 60.0
"""How long the brokers may take, as with Java's `default.api.timeout.ms`."""


class SubscribedLogs:
    """Answers questions about the partitions that a source reads. Raises ClusterError."""

    def __init__(self, router: Router, subscription: Subscription, *, read_committed: bool) -> None:
        self._router = router
        self._subscription = subscription
        self._read_committed = read_committed

    @property
    def cluster(self) -> str:
        """The name of the cluster in errors."""
        return self._router.cluster

    def partitions(self, expected_topics: Collection[str] = ()) -> list[TopicPartition]:
        """Return the partitions that exist.

        Waits a moment for topics that are named or expected: after a start or a change, brokers
        learn of topics one after another.
        """
        subscription = self._subscription
        names = None if subscription.pattern is not None else subscription.named_topics
        wanted = subscription.named_topics | set(expected_topics)
        deadline, backoff = time.monotonic() + NEW_TOPIC_WAIT_S, Backoff()
        while True:
            found = describe_topics(self._router, names, timeout_s=TIMEOUT_S)
            if wanted <= found.keys() or time.monotonic() > deadline:
                break
            self._router.pause(backoff.next_delay_s())
        return subscription.select(
            TopicPartition(topic.name, partition.index)
            for topic in found.values()
            if subscription.includes(topic.name, is_internal=topic.is_internal)
            for partition in topic.partitions
        )

    def require_named(self, partitions: Collection[TopicPartition]) -> None:
        """Raise the error of the first topic or partition that is named but not among these."""
        topics = {partition.topic for partition in partitions}
        for topic in sorted(self._subscription.named_topics - topics):
            describe_topic(self._router, topic, timeout_s=TIMEOUT_S)
        for partition in sorted(set(self._subscription.assigned) - set(partitions)):
            raise TopicMissing(
                self.cluster, f"{partition} does not exist; assign a partition of the topic"
            )

    def earliest(self, partitions: Iterable[TopicPartition]) -> PartitionOffsets:
        """Return the first offsets of those partitions that exist."""
        return self._list(partitions, EARLIEST)

    def latest(self, partitions: Iterable[TopicPartition]) -> PartitionOffsets:
        """Return the ends of those partitions that exist: all that a consumer may read now."""
        return self._list(partitions, LATEST)

    def _list(self, partitions: Iterable[TopicPartition], when: int) -> PartitionOffsets:
        found = list_offsets(
            self._router,
            dict.fromkeys(partitions, when),
            read_committed=self._read_committed,
            timeout_s=TIMEOUT_S,
        )
        offsets: PartitionOffsets = {}
        for partition, (code, listed) in found.items():
            if listed is not None:
                offsets[partition] = listed.offset
            elif code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise error_for_code(self.cluster, LIST_OFFSETS.name, code, str(partition))
        return offsets

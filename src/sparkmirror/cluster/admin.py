"""The admin client of one cluster: topics, configs, ACLs, offsets, users.

Every call ends within the timeout. Until then the router retries what may pass: brokers that stop,
restart or move. Connects with the first call. Several threads may share an `Admin`; their calls
run one after the other.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import Enum
from typing import Self, TypeVar

from sparkmirror.backoff import seconds_left
from sparkmirror.cluster import (
    acls,
    config_resources,
    describe_cluster,
    scram_credentials,
    topic_auto_creation_request,
    topic_changes,
)
from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.config_resources import TopicConfigs
from sparkmirror.cluster.describe_cluster import DescribeClusterResult
from sparkmirror.cluster.describe_topics import (
    NewTopic,
    TopicDescription,
    TopicListing,
    describe_topic,
    describe_topics,
    find_hidden_topics,
    list_topics,
)
from sparkmirror.cluster.shared_topic_listings import WORKER_LISTINGS
from sparkmirror.cluster.topic_changes import TopicChangesResult
from sparkmirror.errors import ClusterError, ClusterTimeout
from sparkmirror.mirror.topics.acls import AclBinding
from sparkmirror.mirror.topics.topic_configs import AlterConfigOp
from sparkmirror.model import TopicPartition
from sparkmirror.wire.net.routing import CALL_TIMEOUT_S, Router
from sparkmirror.wire.protocol.apis import LIST_OFFSETS
from sparkmirror.wire.protocol.error_code_exceptions import error_for_code
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.topics.offsets import EARLIEST, LATEST, list_offsets

T = TypeVar("T")


class ListOffsetsSpec(Enum):
    """Which end of a partition."""

    EARLIEST = EARLIEST
    LATEST = LATEST


class Admin:
    """Calls to one cluster. Close it when done."""

    def __init__(
        self,
        access: ClusterAccess,
        timeout_s: float = CALL_TIMEOUT_S,
        client_id: str = "sparkmirror",
    ) -> None:
        self.cluster = access.cluster
        self._access = access
        self._timeout_s = timeout_s
        self._router = access.new_router(client_id)
        self._lock = threading.Lock()

    @property
    def router(self) -> Router:
        """The router of all calls, for the thread that makes them."""
        return self._router

    def describe_cluster(self) -> DescribeClusterResult:
        """Return the cluster's id and its brokers."""
        return self._call(
            lambda router, timeout_s: describe_cluster.describe_cluster(router, timeout_s=timeout_s)
        )

    def describe_topics(self, names: Collection[str] | None = None) -> dict[str, TopicDescription]:
        """Describe the topics named, or all. A topic that does not exist is not in the result."""
        return self._call(
            lambda router, timeout_s: describe_topics(router, names, timeout_s=timeout_s)
        )

    def list_topics(self, known_digest: bytes = b"") -> TopicListing:
        """Describe all topics, unless nothing has changed since a listing with this digest."""
        sent_at = time.monotonic()
        listing = self._call(
            lambda router, timeout_s: list_topics(router, known_digest, timeout_s=timeout_s)
        )
        if listing.topics is not None:
            WORKER_LISTINGS.add(self._access, sent_at, listing)
        return listing

    def list_topics_since(self, sent_after: float) -> TopicListing:
        """Describe all topics as at this time (`time.monotonic`) or later.

        A listing that another Admin of this process has asked for since then is enough.
        """
        return WORKER_LISTINGS.find(self._access, sent_after) or self.list_topics()

    def find_hidden_topics(self, names: Collection[str]) -> dict[str, ClusterError]:
        """Return the topics that this user may not describe, with the error of each."""
        return self._call(
            lambda router, timeout_s: find_hidden_topics(router, names, timeout_s=timeout_s)
        )

    def describe_topic(self, name: str) -> TopicDescription:
        """Describe one topic. Raises TopicMissing or NotAuthorized."""
        return self._call(
            lambda router, timeout_s: describe_topic(router, name, timeout_s=timeout_s)
        )

    def create_topics(self, topics: Sequence[NewTopic]) -> TopicChangesResult:
        """Create topics and wait for their leaders."""
        return self._call(
            lambda router, timeout_s: topic_changes.create_topics(
                router, topics, timeout_s=timeout_s
            )
        )

    def create_topic(self, topic: NewTopic) -> bool:
        """Create one topic and wait for its leaders. Raises if the cluster refuses it.

        Returns False if the topic exists after a lost response: another client may have created it.
        """
        result = self.create_topics([topic])
        for error in result.failed.values():
            raise error
        return not result.unconfirmed

    def create_partitions(self, partitions: Mapping[str, int]) -> dict[str, ClusterError]:
        """Raise topics to these numbers of partitions and wait for their leaders.

        Returns the errors by topic. A topic that has as many already stays as it is.
        """
        return self._call(
            lambda router, timeout_s: topic_changes.create_partitions(
                router, partitions, timeout_s=timeout_s
            )
        )

    def delete_topics(self, names: Collection[str]) -> dict[str, ClusterError]:
        """Delete topics and wait until they are gone. Returns the errors by topic."""
        return self._call(
            lambda router, timeout_s: topic_changes.delete_topics(
                router, names, timeout_s=timeout_s
            )
        )

    def request_auto_creation(self, names: Collection[str]) -> frozenset[str]:
        """Let brokers create topics on demand. Returns the topics that have leaders now."""
        return self._call(
            lambda router, timeout_s: topic_auto_creation_request.request_auto_creation(
                router, names, timeout_s=timeout_s
            )
        )

    def describe_configs(self, names: Collection[str]) -> dict[str, TopicConfigs | ClusterError]:
        """Return all configs of topics with their sources, or the error, by topic."""
        return self._call(
            lambda router, timeout_s: config_resources.describe_configs(
                router, names, timeout_s=timeout_s
            )
        )

    def can_alter_configs(self) -> bool:
        """Whether the cluster has an API that changes configs of topics."""
        return self._call(
            lambda router, timeout_s: config_resources.can_alter_configs(
                router, timeout_s=timeout_s
            )
        )

    def incremental_alter_configs(
        self, changes: Mapping[str, Sequence[AlterConfigOp]]
    ) -> dict[str, ClusterError]:
        """Set and delete configs of topics. Returns the errors by topic.

        Raises UnsupportedByBroker before Kafka 2.3.
        """
        return self._call(
            lambda router, timeout_s: config_resources.incremental_alter_configs(
                router, changes, timeout_s=timeout_s
            )
        )

    def alter_configs(self, configs: Mapping[str, Mapping[str, str]]) -> dict[str, ClusterError]:
        """Replace all configs of topics. Returns the errors by topic."""
        return self._call(
            lambda router, timeout_s: config_resources.alter_configs(
                router, configs, timeout_s=timeout_s
            )
        )

    def describe_topic_acls(self) -> tuple[AclBinding, ...] | None:
        """Return all ACLs on topics; None if the cluster has no authorizer."""
        return self._call(
            lambda router, timeout_s: acls.describe_topic_acls(router, timeout_s=timeout_s)
        )

    def create_acls(self, bindings: Sequence[AclBinding]) -> dict[AclBinding, ClusterError]:
        """Create ACLs. Returns the errors by ACL."""
        return self._call(
            lambda router, timeout_s: acls.create_acls(router, bindings, timeout_s=timeout_s)
        )

    def list_offsets(
        self, partitions: Iterable[TopicPartition], spec: ListOffsetsSpec
    ) -> dict[TopicPartition, int]:
        """Return the first offset of partitions, or their high watermark."""
        wanted = dict.fromkeys(partitions, spec.value)
        found = self._call(
            lambda router, timeout_s: list_offsets(router, wanted, timeout_s=timeout_s)
        )
        offsets: dict[TopicPartition, int] = {}
        for partition, (code, listed) in found.items():
            if code is not ErrorCode.NONE or listed is None:
                raise error_for_code(self.cluster, LIST_OFFSETS.name, code, str(partition))
            offsets[partition] = listed.offset
        return offsets

    def alter_user_scram_credentials(self, users: Mapping[str, str]) -> None:
        """Set the passwords of users for all SCRAM mechanisms."""
        self._call(
            lambda router, timeout_s: scram_credentials.alter_user_scram_credentials(
                router, users, timeout_s=timeout_s
            )
        )

    def close(self) -> None:
        """Close the connections. Waits for a call of another thread."""
        with self._lock:
            self._router.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(self, call: Callable[[Router, float], T]) -> T:
        """Run a call with the router and the time that is left for it."""
        deadline = time.monotonic() + self._timeout_s
        if not self._lock.acquire(timeout=self._timeout_s):
            raise ClusterTimeout(
                self.cluster,
                f"calls of other threads took {self._timeout_s:.0f} s;"
                " check whether the brokers are well",
            )
        try:
            return call(self._router, seconds_left(deadline))
        finally:
            self._lock.release()

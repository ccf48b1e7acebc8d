"""The three stores of a worker, built from its config. Nothing is asked of the cluster yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from sparkmirror.cluster.access import Access
from sparkmirror.cluster.admin import Admin
from sparkmirror.store.configs import ConfigTopic
from sparkmirror.store.connector_offsets import ConnectorOffsets
from sparkmirror.store.keeping import ConfigStore, OffsetStore, StatusStore
from sparkmirror.store.outbox import Outbox
from sparkmirror.store.preparing import prepare
from sparkmirror.store.statuses import StatusTopic
from sparkmirror.store.storage_topics import StorageTopic, StorageTopics
from sparkmirror.store.topic_log import TopicLog

PREPARED_WITHIN_S = 15.0
"""How long one attempt to look for a topic, or to create it, may take."""
_LEADER_WRITES_ALONE = ("preparing", "enabled")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """What a worker remembers, wherever it is kept."""

    configs: ConfigStore
    offsets: OffsetStore
    statuses: StatusStore


def kafka_stores(worker: Mapping[str, str], access: Access) -> Stores:
    """Stores in the topics that a worker's config names, on the worker's own cluster.

    `worker` is the expanded config. Starting a store creates or checks its topic first.
    """
    topics = StorageTopics.of(worker)
    group = worker["group.id"]
    client = "-".join(filter(None, (group, worker.get("client.id", "").strip())))
    support = worker.get("exactly.once.source.support", "").strip().lower()
    claim = f"connect-cluster-{group}" if support in _LEADER_WRITES_ALONE else None
    statuses = _log(topics.statuses, access, f"{client}-statuses")
    return Stores(
        configs=ConfigTopic(_log(topics.configs, access, f"{client}-configs", claim)),
        offsets=ConnectorOffsets(_log(topics.offsets, access, f"{client}-offsets")),
        statuses=StatusTopic(statuses, Outbox(statuses)),
    )


def _log(topic: StorageTopic, access: Access, client_id: str, claim: str | None = None) -> TopicLog:
    def prepared() -> None:
        with Admin(access, PREPARED_WITHIN_S) as admin:
            prepare(admin, topic)

    return TopicLog(
        topic.name, partial(access.router, client_id), prepare=prepared, transactional_id=claim
    )

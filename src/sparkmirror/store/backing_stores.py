"""Builds the three stores of a worker from its config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from sparkmirror.backoff import Backoff
from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.admin import Admin
from sparkmirror.store.config_backing_store import KafkaConfigBackingStore
from sparkmirror.store.kafka_based_log import KafkaBasedLog
from sparkmirror.store.offset_backing_store import KafkaOffsetBackingStore
from sparkmirror.store.outbox import Outbox
from sparkmirror.store.status_backing_store import KafkaStatusBackingStore
from sparkmirror.store.storage_topic_settings import StorageTopic, StorageTopics
from sparkmirror.store.store_api import ConfigBackingStore, OffsetBackingStore, StatusBackingStore
from sparkmirror.store.topic_setup import create_or_verify_topic

FIRST_SETUP_TIMEOUT_S = 1.0
MAX_SETUP_TIMEOUT_S = 15.0
"""How long one attempt to find or create a topic may take. The first one ends soon, so that the
operator learns early why the worker waits; each further one may take twice as long."""
_FENCED_LEADER_MODES = ("preparing", "enabled")


@dataclass(frozen=True, slots=True, kw_only=True)
class BackingStores:
    """The configs, offsets and statuses of a worker group."""

    configs: ConfigBackingStore
    offsets: OffsetBackingStore
    statuses: StatusBackingStore
    cluster: str = ""
    """The name and the addresses of the cluster that has the topics."""

    def problem(self) -> str:
        """Return why one of the topics cannot be read or written now; empty if all can."""
        stores = (self.configs, self.statuses, self.offsets)
        return next((text for store in stores if (text := store.problem())), "")


def kafka_backing_stores(worker: Mapping[str, str], access: ClusterAccess) -> BackingStores:
    """Return stores in the topics that `worker` names, on the worker's own cluster.

    `worker` is the config with its placeholders replaced. Sends no request: the start of a store
    creates or verifies its topic.
    """
    topics = StorageTopics.from_worker_config(worker)
    group = worker["group.id"]
    client = "-".join(filter(None, (group, worker.get("client.id", "").strip())))
    support = worker.get("exactly.once.source.support", "").strip().lower()
    transactional_id = f"connect-cluster-{group}" if support in _FENCED_LEADER_MODES else None
    statuses = _kafka_based_log(topics.statuses, access, f"{client}-statuses")
    return BackingStores(
        configs=KafkaConfigBackingStore(
            _kafka_based_log(topics.configs, access, f"{client}-configs", transactional_id)
        ),
        offsets=KafkaOffsetBackingStore(
            _kafka_based_log(topics.offsets, access, f"{client}-offsets")
        ),
        statuses=KafkaStatusBackingStore(statuses, Outbox(statuses)),
        cluster=f"{access.cluster} ({', '.join(map(str, access.bootstrap_servers))})",
    )


def _kafka_based_log(
    topic: StorageTopic, access: ClusterAccess, client_id: str, transactional_id: str | None = None
) -> KafkaBasedLog:
    timeouts = Backoff(initial_s=FIRST_SETUP_TIMEOUT_S, max_s=MAX_SETUP_TIMEOUT_S)

    def set_up_topic() -> None:
        with Admin(access, timeouts.next_delay_s()) as admin:
            create_or_verify_topic(admin, topic)

    return KafkaBasedLog(
        topic.name,
        partial(access.new_router, client_id),
        set_up_topic=set_up_topic,
        transactional_id=transactional_id,
    )

"""Connectors and tasks without a herder: what they tell is kept for the test to look at."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Collection, Mapping

from sparkmirror.connect.connector import Connector
from sparkmirror.connect.connectors.shared.worker_clients import WorkerClientConfig
from sparkmirror.errors import ClusterTimeout
from tests.support.kafka.clusters import SharedCluster


class RecordingContext:
    """A ConnectorContext that counts."""

    def __init__(self, *, cancelled: bool = False) -> None:
        self.reconfiguration_requests = 0
        self.errors: list[BaseException] = []
        self._cancelled = cancelled

    def request_task_reconfiguration(self) -> None:
        """Count it."""
        self.reconfiguration_requests += 1

    def raise_error(self, error: BaseException) -> None:
        """Keep it."""
        self.errors.append(error)

    def is_cancelled(self) -> bool:
        """Say what the test wants."""
        return self._cancelled


class RecordingListener:
    """A TaskListener that keeps what was said of each task, in order."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.reports: dict[int, list[str]] = defaultdict(list)
        self.failures: dict[int, BaseException] = {}
        self.topics: set[str] = set()

    def on_running(self, task: int, remark: str = "") -> None:
        """Keep it."""
        self._record(task, f"running: {remark}" if remark else "running")

    def on_paused(self, task: int) -> None:
        """Keep it."""
        self._record(task, "paused")

    def on_failed(self, task: int, error: BaseException) -> None:
        """Keep it."""
        self.failures[task] = error
        self._record(task, "failed")

    def on_stopped(self, task: int) -> None:
        """Keep it."""
        self._record(task, "stopped")

    def on_topics(self, task: int, topics: Collection[str]) -> None:
        """Keep them."""
        self.topics |= set(topics)

    def last_report(self, task: int = 0) -> str:
        """What was said last."""
        with self._lock:
            return self.reports[task][-1] if self.reports[task] else ""

    def _record(self, task: int, what: str) -> None:
        with self._lock:
            self.reports[task].append(what)


def connector_config(
    kind: str, name: str, source: SharedCluster, target: SharedCluster, **more: str
) -> dict[str, str]:
    """A connector as people configure it; keys of `more` have underscores for dots.

    Heartbeats are not copied unless asked for: the clusters are shared, and others may beat there.
    """
    return {
        "name": name,
        "connector.class": f"org.apache.kafka.connect.mirror.Mirror{kind}Connector",
        "source.cluster.alias": "A",
        "target.cluster.alias": "B",
        **{f"source.cluster.{key}": value for key, value in source.properties.items()},
        **{f"target.cluster.{key}": value for key, value in target.properties.items()},
        "heartbeats.replication.enabled": "false",
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
        "heartbeats.topic.replication.factor": "1",
        **{key.replace("_", "."): value for key, value in more.items()},
    }


def can_plan_tasks(connector: Connector) -> bool:
    """Whether it has had its first look: its start does not wait long for slow clusters."""
    try:
        connector.task_configs(1)
    except ClusterTimeout:
        return False
    return True


def worker_clients_on(
    cluster: SharedCluster, offsets_topic: str, **more: str
) -> WorkerClientConfig:
    """A worker that lives on a cluster."""
    properties: Mapping[str, str] = {
        **cluster.properties,
        **{f"producer.{key}": value for key, value in cluster.properties.items()},
        "group.id": "tests",
        "offset.storage.topic": offsets_topic,
        "config.storage.topic": "configs",
        "status.storage.topic": "statuses",
        "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        **{key.replace("_", "."): value for key, value in more.items()},
    }
    return WorkerClientConfig(properties=properties)

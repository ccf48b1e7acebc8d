"""Contexts and listeners for connectors and tasks without a herder; they record all calls."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Collection, Mapping

from sparkmirror.connect.connector import Connector
from sparkmirror.connect.connectors.shared.worker_client_config import WorkerClientConfig
from sparkmirror.errors import TasksNotPlanned
from tests.support.kafka.clusters import SharedCluster


class RecordingContext:
    """A ConnectorContext that records calls."""

    def __init__(self, *, cancelled: bool = False) -> None:
        self.reconfiguration_requests = 0
        self.errors: list[BaseException] = []
        self.problems: list[str] = []
        self._cancelled = cancelled

    def request_task_reconfiguration(self) -> None:
        """Count the request."""
        self.reconfiguration_requests += 1

    def report_problem(self, text: str) -> None:
        """Record the problem."""
        self.problems.append(text)

    def raise_error(self, error: BaseException) -> None:
        """Record the error."""
        self.errors.append(error)

    @property
    def problem(self) -> str:
        """The last problem that the connector has reported; empty if there is none."""
        return self.problems[-1] if self.problems else ""

    def is_cancelled(self) -> bool:
        """Return what the test has set."""
        return self._cancelled


class RecordingListener:
    """A TaskListener that records the reports of each task, in order."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.reports: dict[int, list[str]] = defaultdict(list)
        self.failures: dict[int, BaseException] = {}
        self.topics: set[str] = set()

    def on_running(self, task: int, problem: str = "") -> None:
        """Record the report."""
        self._record(task, f"running: {problem}" if problem else "running")

    def on_paused(self, task: int) -> None:
        """Record the report."""
        self._record(task, "paused")

    def on_failed(self, task: int, error: BaseException) -> None:
        """Record the report."""
        self.failures[task] = error
        self._record(task, "failed")

    def on_stopped(self, task: int) -> None:
        """Record the report."""
        self._record(task, "stopped")

    def on_topics(self, task: int, topics: Collection[str]) -> None:
        """Record the topics."""
        self.topics |= set(topics)

    def last_report(self, task: int = 0) -> str:
        """The last report of a task."""
        with self._lock:
            return self.reports[task][-1] if self.reports[task] else ""

    def _record(self, task: int, report: str) -> None:
        with self._lock:
            self.reports[task].append(report)


def connector_config(
    connector_type: str, name: str, source: SharedCluster, target: SharedCluster, **more: str
) -> dict[str, str]:
    """A connector's config; keys of `more` have underscores for dots.

    Heartbeats are not replicated by default: other tests write heartbeats to the shared clusters.
    """
    return {
        "name": name,
        "connector.class": f"org.apache.kafka.connect.mirror.Mirror{connector_type}Connector",
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
    """Whether its first refresh has ended: its start does not wait long for slow clusters."""
    try:
        connector.task_configs(1)
    except TasksNotPlanned:
        return False
    return True


def worker_clients_on(
    cluster: SharedCluster, offsets_topic: str, **more: str
) -> WorkerClientConfig:
    """A worker whose internal topics are on a cluster."""
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

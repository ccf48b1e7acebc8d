"""A started source connector without a herder, and the configs of the topics that it makes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.admin import Admin
from sparkmirror.connect.connectors.source.source_connector import MirrorSourceConnector
from sparkmirror.errors import ClusterError
from sparkmirror.mirror.topics.task_assignment import assigned_partitions
from sparkmirror.mirror.topics.topic_configs import ConfigSource
from tests.support.connect.connector_context import RecordingContext, can_plan_tasks
from tests.support.waiting import wait_until

REFRESH_TIMEOUT_S = 90.0


@dataclass(slots=True)
class StartedConnector:
    """A started connector, and its context."""

    connector: MirrorSourceConnector
    context: RecordingContext

    def assigned_partitions_by_task(self, tasks_max: int = 4) -> list[list[str]]:
        """The partitions of each task."""
        configs = self.connector.task_configs(tasks_max)
        return [[str(p) for p in assigned_partitions(config)] for config in configs]


@contextmanager
def started_connector(config: dict[str, str]) -> Iterator[StartedConnector]:
    """Start a connector and wait for its first refresh; stop it at the end."""
    context = RecordingContext()
    connector = MirrorSourceConnector(config["name"], context)
    try:
        connector.start(config)
        wait_until(lambda: can_plan_tasks(connector), "the first refresh", REFRESH_TIMEOUT_S)
        yield StartedConnector(connector, context)
    finally:
        connector.stop()


def explicit_configs(access: ClusterAccess, topic: str) -> dict[str, str | None]:
    """Return the configs that were set for a topic."""
    with Admin(access) as admin:
        found = admin.describe_configs([topic])[topic]
    assert not isinstance(found, ClusterError)
    return {
        entry.name: entry.value
        for entry in found
        if entry.source is ConfigSource.DYNAMIC_TOPIC_CONFIG
    }

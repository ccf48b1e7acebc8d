"""Keeps Spark ready for the tasks that other workers of the group may leave.

Spark takes seconds to start. So a worker starts it before it joins a group whose members run tasks
of source connectors, and keeps it as long as the group has another member: a task that comes from a
worker that restarts or dies starts at once. A connector with Spark settings of its own, and one on
a Spark cluster, starts Spark when it comes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Protocol

from sparkmirror.config.definition.connector_config_validation import CONNECTOR_CLASS
from sparkmirror.config.definition.java_classes import SOURCE_CONNECTOR
from sparkmirror.config.definition.plugins import find_connector
from sparkmirror.mirror.connect_topics.cluster_config_state import ClusterConfigState
from sparkmirror.mirror.connect_topics.connect_configs import TargetState
from sparkmirror.worker.spark.spark_settings import own_spark_conf

START_TIMEOUT_S = 300.0
"""After so long a worker joins its group although Spark has not started."""


class SparkReadiness(Protocol):
    """What keeps Spark ready: the applications of the worker."""

    def keep_ready(self, group: str, tasks: int) -> None:
        """Keep Spark ready to take over so many tasks of a group at once."""
        ...

    def is_ready(self) -> bool:
        """Whether a task would start at once, or never."""
        ...


class SparkPrestart:
    """Of one group. The thread of the worker's membership calls it."""

    def __init__(
        self, group_id: str, spark: SparkReadiness, count_tasks: Callable[[], int]
    ) -> None:
        """`count_tasks` returns how many tasks of the group this worker could take over."""
        self._group_id = group_id
        self._spark = spark
        self._count_tasks = count_tasks
        self._give_up_at = float("inf")

    def is_ready(self) -> bool:
        """Whether this worker may join other members. Starts Spark if it has to."""
        tasks = self._count_tasks()
        if not tasks:
            return True
        self._spark.keep_ready(self._group_id, tasks)
        now = time.monotonic()
        self._give_up_at = min(self._give_up_at, now + START_TIMEOUT_S)
        return self._spark.is_ready() or now >= self._give_up_at

    def starting_text(self) -> str:
        """Return what this worker waits for."""
        return (
            f"Spark starts; then this worker joins group {self._group_id} and takes over its share"
            " of the tasks, which other workers run meanwhile"
        )

    def on_assigned(self, members: int) -> None:
        """Keep Spark ready while the group has another member that may leave tasks."""
        self._give_up_at = float("inf")
        self._spark.keep_ready(self._group_id, self._count_tasks() if members > 1 else 0)


def count_divided_tasks(
    configs: ClusterConfigState, is_undivided: Callable[[Mapping[str, str | None]], bool]
) -> int:
    """Return how many tasks run in the Spark applications that connectors of a worker share."""
    return sum(
        len(configs.task_configs(name))
        for name in configs.connectors()
        if configs.target_state(name) is TargetState.STARTED
        and _shares_spark(configs.connector_config(name) or {}, is_undivided)
    )


def _shares_spark(
    config: Mapping[str, str | None], is_undivided: Callable[[Mapping[str, str | None]], bool]
) -> bool:
    plugin = find_connector((config.get(CONNECTOR_CLASS) or "").strip())
    is_source = plugin is not None and plugin.class_name == SOURCE_CONNECTOR
    own = own_spark_conf({key: value for key, value in config.items() if value is not None})
    return is_source and not is_undivided(config) and not own

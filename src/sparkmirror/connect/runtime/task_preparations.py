"""Gets ready for tasks that other workers of the group run, before they come to this one.

A task that moves stands still until its next owner has connected to both clusters and has read
where copying stands. So a worker does that before it joins other members, and goes on with it for
connectors of which it runs no task, while the group has another member. It writes nothing for them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection
from functools import partial

from sparkmirror.connect.distributed.assignment import Assignment
from sparkmirror.connect.runtime.config_transformer import ConfigTransformer
from sparkmirror.connect.runtime.connector_registry import ConnectorRegistry, find_registered
from sparkmirror.connect.runtime.threads.serial_executor import SerialExecutor
from sparkmirror.connect.task_group import TaskPlan, TaskPreparation
from sparkmirror.errors import MirrorError
from sparkmirror.mirror.connect_topics.cluster_config_state import ClusterConfigState
from sparkmirror.mirror.connect_topics.connect_configs import TargetState

log = logging.getLogger(__name__)

MAX_PREPARED = 4
"""So many connectors are prepared at a time. What connectors share is ready for all of them."""
PREPARE_TIMEOUT_S = 20.0
"""After so long a worker joins its group although a connector is not prepared."""


def choose_connectors(
    candidates: Collection[str], prepared: Collection[str], assignment: Assignment | None
) -> frozenset[str]:
    """Return the connectors to prepare; `assignment` is None before the worker has joined. Pure.

    First those with a task that no member runs, because it may come in the next round; then those
    that are prepared already. None of which this worker runs or stops a task.
    """
    own: set[str] = set()
    unowned: set[str] = set()
    if assignment is not None:
        if len(assignment.shares) == 1:
            return frozenset()
        own = {task.connector for task in (*assignment.own_share.tasks, *assignment.revoked_tasks)}
        unowned = {task.connector for task in assignment.unowned_tasks()}
    order = sorted(set(candidates) - own, key=lambda n: (n not in unowned, n not in prepared, n))
    return frozenset(order[:MAX_PREPARED])


class TaskPreparations:
    """The connectors that are prepared now. Any thread may call it; a thread of its own prepares.

    No method blocks.
    """

    def __init__(
        self,
        registry: ConnectorRegistry,
        transformer: ConfigTransformer,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._registry = registry
        self._transformer = transformer
        self._clock = clock
        self._lock = threading.Lock()
        self._prepared: dict[str, TaskPreparation] = {}
        self._give_up_at = float("inf")
        self._executor: SerialExecutor | None = None
        self._is_closed = False

    def update(self, assignment: Assignment | None, configs: ClusterConfigState) -> None:
        """Prepare for tasks that may come after this assignment; None before the first one.

        A connector whose tasks have come keeps what was prepared.
        """
        with self._lock:
            candidates = self._candidates(configs)
            wanted = choose_connectors(candidates.keys(), self._prepared.keys(), assignment)
            own = {task.connector for task in assignment.own_share.tasks} if assignment else set()
            if assignment is not None:
                self._give_up_at = float("inf")
            for name in [*self._prepared.keys() - wanted]:
                preparation = self._prepared.pop(name)
                if name not in own:
                    self._submit(partial(preparation.forget, name))
            for name in sorted(wanted - self._prepared.keys()):
                self._prepared[name] = candidates[name]
                self._submit(partial(self._prepare, name, configs, candidates[name]))

    def forget(self, name: str) -> None:
        """Drop what is prepared for a connector: its config has changed."""
        with self._lock:
            preparation = self._prepared.pop(name, None)
            if preparation is not None:
                self._submit(partial(preparation.forget, name))

    def is_ready(self, configs: ClusterConfigState) -> bool:
        """Prepare for a worker that has not joined; return whether it may join now."""
        self.update(None, configs)
        with self._lock:
            now = self._clock()
            self._give_up_at = min(self._give_up_at, now + PREPARE_TIMEOUT_S)
            is_ready = all(one.is_ready(name) for name, one in self._prepared.items())
            return is_ready or now >= self._give_up_at

    def close(self) -> None:
        """Prepare nothing more."""
        with self._lock:
            self._is_closed = True
            if self._executor is not None:
                self._executor.close()

    def _candidates(self, configs: ClusterConfigState) -> dict[str, TaskPreparation]:
        """Return the connectors that are started, have tasks, and can be prepared."""
        found: dict[str, TaskPreparation] = {}
        for name in configs.connectors():
            config = configs.connector_config(name)
            is_started = configs.target_state(name) is TargetState.STARTED
            if config is None or not is_started or not configs.task_configs(name):
                continue
            registered = find_registered(self._registry, config)
            if registered is not None and registered.preparation is not None:
                found[name] = registered.preparation
        return found

    def _submit(self, job: Callable[[], None]) -> None:
        if self._is_closed:
            return
        if self._executor is None:
            self._executor = SerialExecutor("task-preparation", connector="", scope="tasks")
        self._executor.submit(job)

    # -- the executor's thread -------------------------------------------------------------------

    def _prepare(
        self, name: str, configs: ClusterConfigState, preparation: TaskPreparation
    ) -> None:
        config = configs.connector_config(name)
        assert config is not None
        try:
            plan = TaskPlan(
                connector=name,
                config=self._transformer.transform(config).values,
                tasks={},
                task_count=len(configs.task_configs(name)),
                generation=0,
            )
            preparation.prepare(plan)
        except MirrorError:
            log.debug("Tasks of connector %s are not prepared; their start says why", name)

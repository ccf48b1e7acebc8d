"""Carries what connectors and tasks report to the herder's thread, in order.

Whatever thread reports, the herd hears it in its own. A run that was given up is muted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from sparkmirror.connect.connector_run import ConnectorEvents, ConnectorWish
from sparkmirror.connect.errands import Errand, Errands
from sparkmirror.connect.task_run import TaskEvents
from sparkmirror.mirror.connect_configs import Properties


class _Reports:
    """Posts to the herder's thread until muted."""

    def __init__(self, errands: Errands) -> None:
        self._errands = errands
        self._is_muted = False

    def mute(self) -> None:
        """Let nothing through any more, not even what was posted already."""
        self._is_muted = True

    def _post(self, errand: Errand) -> None:
        self._errands.post(partial(self._deliver, errand))

    def _deliver(self, errand: Errand) -> None:
        if not self._is_muted:
            errand()


class ConnectorReports(_Reports):
    """ConnectorEvents, by post."""

    def __init__(self, errands: Errands, to: ConnectorEvents) -> None:
        super().__init__(errands)
        self._to = to

    def connector_is(self, name: str, wish: ConnectorWish, ttl_ms: int | None) -> None:
        self._post(partial(self._to.connector_is, name, wish, ttl_ms))

    def connector_failed(self, name: str, told: str) -> None:
        self._post(partial(self._to.connector_failed, name, told))

    def connector_ended(self, name: str, *, restarting: bool) -> None:
        self._post(partial(self._to.connector_ended, name, restarting=restarting))

    def connector_gone(self, name: str) -> None:
        self._post(partial(self._to.connector_gone, name))

    def connector_planned(
        self, name: str, properties: Properties, tasks: Sequence[Mapping[str, str]]
    ) -> None:
        self._post(partial(self._to.connector_planned, name, properties, tasks))

    def planning_failed(self, name: str, told: str) -> None:
        self._post(partial(self._to.planning_failed, name, told))

    def connector_asks(self, name: str) -> None:
        self._post(partial(self._to.connector_asks, name))


class TaskReports(_Reports):
    """TaskEvents, by post."""

    def __init__(self, errands: Errands, to: TaskEvents) -> None:
        super().__init__(errands)
        self._to = to

    def task_running(self, name: str, task: int, remark: str) -> None:
        self._post(partial(self._to.task_running, name, task, remark))

    def task_paused(self, name: str, task: int) -> None:
        self._post(partial(self._to.task_paused, name, task))

    def task_failed(self, name: str, task: int, told: str, *, has_started: bool) -> None:
        self._post(partial(self._to.task_failed, name, task, told, has_started=has_started))

    def task_stopped(self, name: str, task: int) -> None:
        self._post(partial(self._to.task_stopped, name, task))

    def task_used(self, name: str, task: int, topics: Collection[str]) -> None:
        self._post(partial(self._to.task_used, name, task, tuple(topics)))

    def tasks_restarting(self, name: str, tasks: Collection[int]) -> None:
        self._post(partial(self._to.tasks_restarting, name, tasks))

    def tasks_are(self, name: str, count: int) -> None:
        self._post(partial(self._to.tasks_are, name, count))

    def tasks_gone(self, name: str) -> None:
        self._post(partial(self._to.tasks_gone, name))

"""Carries what connectors and tasks report to the herder's thread, in order.

Whatever thread reports, the herd hears it in its own. A run that was given up is muted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from sparkmirror.connect.runtime.herder_thread import HerderAction, HerderThread
from sparkmirror.connect.runtime.worker_connector import ConnectorEvents, DesiredConnector
from sparkmirror.connect.runtime.worker_tasks import TaskEvents
from sparkmirror.mirror.connect_topics.connect_configs import ConfigProperties


class _EventPoster:
    """Posts to the herder's thread until muted."""

    def __init__(self, errands: HerderThread) -> None:
        self._herder_thread = errands
        self._is_closed = False

    def close(self) -> None:
        """Let nothing through any more, not even what was posted already."""
        self._is_closed = True

    def _post(self, errand: HerderAction) -> None:
        self._herder_thread.submit(partial(self._deliver, errand))

    def _deliver(self, errand: HerderAction) -> None:
        if not self._is_closed:
            errand()


class ConnectorEventPoster(_EventPoster):
    """ConnectorEvents, by post."""

    def __init__(self, errands: HerderThread, to: ConnectorEvents) -> None:
        super().__init__(errands)
        self._receiver = to

    def on_target_state_reached(
        self, name: str, wish: DesiredConnector, ttl_ms: int | None
    ) -> None:
        self._post(partial(self._receiver.on_target_state_reached, name, wish, ttl_ms))

    def on_connector_failed(self, name: str, told: str) -> None:
        self._post(partial(self._receiver.on_connector_failed, name, told))

    def on_connector_stopped(self, name: str, *, restarting: bool) -> None:
        self._post(partial(self._receiver.on_connector_stopped, name, restarting=restarting))

    def on_connector_removed(self, name: str) -> None:
        self._post(partial(self._receiver.on_connector_removed, name))

    def on_task_configs_generated(
        self, name: str, properties: ConfigProperties, tasks: Sequence[Mapping[str, str]]
    ) -> None:
        self._post(partial(self._receiver.on_task_configs_generated, name, properties, tasks))

    def on_task_configs_failed(self, name: str, told: str) -> None:
        self._post(partial(self._receiver.on_task_configs_failed, name, told))

    def on_reconfiguration_requested(self, name: str) -> None:
        self._post(partial(self._receiver.on_reconfiguration_requested, name))


class TaskEventPoster(_EventPoster):
    """TaskEvents, by post."""

    def __init__(self, errands: HerderThread, to: TaskEvents) -> None:
        super().__init__(errands)
        self._receiver = to

    def on_task_running(self, name: str, task: int, remark: str) -> None:
        self._post(partial(self._receiver.on_task_running, name, task, remark))

    def on_task_paused(self, name: str, task: int) -> None:
        self._post(partial(self._receiver.on_task_paused, name, task))

    def on_task_failed(self, name: str, task: int, told: str, *, has_started: bool) -> None:
        self._post(
            partial(self._receiver.on_task_failed, name, task, told, has_started=has_started)
        )

    def on_task_stopped(self, name: str, task: int) -> None:
        self._post(partial(self._receiver.on_task_stopped, name, task))

    def on_task_topics(self, name: str, task: int, topics: Collection[str]) -> None:
        self._post(partial(self._receiver.on_task_topics, name, task, tuple(topics)))

    def on_tasks_restarting(self, name: str, tasks: Collection[int]) -> None:
        self._post(partial(self._receiver.on_tasks_restarting, name, tasks))

    def on_task_count(self, name: str, count: int) -> None:
        self._post(partial(self._receiver.on_task_count, name, count))

    def on_tasks_removed(self, name: str) -> None:
        self._post(partial(self._receiver.on_tasks_removed, name))

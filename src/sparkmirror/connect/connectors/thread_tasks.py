"""Tasks as threads of the worker: those of the checkpoint and heartbeat connectors.

begin ──▶ turn ──▶ wait ──▶ turn ...        paused: nothing but waiting
  └─────────┴── a cluster in trouble: said as a remark, tried again after a pause
            └── any other error: the task has failed
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping

from sparkmirror import logs
from sparkmirror.connect.connector import ExpandedConfig
from sparkmirror.connect.connectors.work import Work
from sparkmirror.connect.task_group import TaskListener, TaskPlan
from sparkmirror.errors import ClusterError
from sparkmirror.wire.backoff import Backoff

log = logging.getLogger(__name__)

MakeWork = Callable[[ExpandedConfig], Work]
"""Makes the work of a task; may raise ConfigError, which fails the task."""

RESTART_WITHIN_S = 5.0
_LONGEST_WAIT_S = 3600.0


class ThreadTasks:
    """A TaskGroup. Its tasks have nothing to do with one another."""

    def __init__(self, connector: str, listener: TaskListener, make: MakeWork) -> None:
        self._connector = connector
        self._listener = listener
        self._make = make
        self._tasks: dict[int, _Task] = {}
        self._is_paused = False

    def start(self, plan: TaskPlan, *, paused: bool) -> None:
        """Begin every task."""
        self._is_paused = paused
        for number, config in enumerate(plan.tasks):
            self._begin(number, config)

    def reassign(self, plan: TaskPlan) -> None:
        """Go on with another plan; a task that can take its new config is not interrupted."""
        for number in sorted(self._tasks.keys() - set(range(len(plan.tasks)))):
            self._tasks.pop(number).stop(RESTART_WITHIN_S)
            self._listener.on_stopped(number)
        for number, config in enumerate(plan.tasks):
            task = self._tasks.get(number)
            if task is None or not task.take(config):
                self.restart({number: config})

    def pause(self) -> None:
        """Hold still."""
        self._is_paused = True
        for task in self._tasks.values():
            task.pause(paused=True)

    def resume(self) -> None:
        """Go on."""
        self._is_paused = False
        for task in self._tasks.values():
            task.pause(paused=False)

    def restart(self, tasks: Mapping[int, ExpandedConfig]) -> None:
        """Begin these tasks anew."""
        for number, config in tasks.items():
            if number in self._tasks:
                self._tasks.pop(number).stop(RESTART_WITHIN_S)
            self._begin(number, config)

    def stop(self, within_s: float) -> None:
        """End all tasks; one that hangs is left behind and says nothing any more."""
        deadline = time.monotonic() + within_s
        for task in self._tasks.values():
            task.ask_to_stop()
        for number, task in self._tasks.items():
            task.stop(deadline - time.monotonic())
            self._listener.on_stopped(number)
        self._tasks.clear()

    def _begin(self, number: int, config: ExpandedConfig) -> None:
        task = _Task(self._connector, number, config, self._make, self._listener)
        self._tasks[number] = task
        task.pause(paused=self._is_paused)
        task.start()


class _Task:
    """One task and its thread."""

    def __init__(
        self,
        connector: str,
        number: int,
        config: ExpandedConfig,
        make: MakeWork,
        listener: TaskListener,
    ) -> None:
        self._connector = connector
        self._number = number
        self._config = config
        self._make = make
        self._listener = listener
        self._news = threading.Condition()
        self._is_paused = False
        self._is_over = False
        self._taking: ExpandedConfig | None = None
        self._wishes = 0
        """How often something else was wanted; the thread waits only if it has seen to them all."""
        self._seen = 0
        self._told: str | None = None
        self._backoff = Backoff(first_s=0.5, longest_s=30.0)
        name = f"task-thread-{connector}-{number}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def pause(self, *, paused: bool) -> None:
        """Hold still, or go on."""
        with self._news:
            self._is_paused, self._told = paused, None
            self._wishes += 1
            self._news.notify()

    def take(self, config: ExpandedConfig) -> bool:
        """Go on with another config; False if the task is no more, or needs a new beginning."""
        with self._news:
            if self._is_over or not self._thread.is_alive():
                return False
            self._taking, self._told = config, None
            self._wishes += 1
            self._news.notify()
        return True

    def ask_to_stop(self) -> None:
        """Have it end after the turn it is in."""
        with self._news:
            self._is_over = True
            self._news.notify()

    def stop(self, within_s: float) -> None:
        """End it."""
        self.ask_to_stop()
        if self._thread.is_alive():
            self._thread.join(timeout=max(within_s, 0.0))

    # -- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        with logs.context(connector=self._connector, task=self._number):
            try:
                while not self._is_over:
                    self._live()
            except Exception as error:  # noqa: BLE001  whatever it is, it makes the task FAILED
                if not self._is_over:
                    self._listener.on_failed(self._number, error)

    def _live(self) -> None:
        """Work until it is over, or until a config came that takes a new beginning."""
        work = self._make(self._config)
        has_begun = False
        try:
            while not self._is_over:
                self._seen = self._wishes
                if self._taking is not None and not self._change(work):
                    return
                if self._is_paused:
                    self._tell_paused()
                    self._wait(_LONGEST_WAIT_S)
                elif not has_begun:
                    has_begun = self._succeeds(work.begin)
                elif self._succeeds(work.turn):
                    self._tell(work)
                    self._wait(work.pause_s())
        finally:
            work.end()

    def _change(self, work: Work) -> bool:
        with self._news:
            config, self._taking = self._taking, None
        assert config is not None
        self._config = config
        return work.take(config)

    def _succeeds(self, step: Callable[[], None]) -> bool:
        """Try something; if a cluster is in trouble, say so and wait a while, longer each time."""
        try:
            step()
        except ClusterError as error:
            self._say(str(error))
            self._wait(self._backoff.pause_s())
            return False
        self._backoff.reset()
        return True

    def _wait(self, seconds: float) -> None:
        with self._news:
            self._news.wait_for(
                lambda: self._is_over or self._wishes != self._seen, timeout=seconds
            )

    def _tell(self, work: Work) -> None:
        self._say(work.remark())
        topics = work.topics()
        if topics:
            self._listener.on_topics(self._number, topics)

    def _say(self, remark: str) -> None:
        """Tell how it goes, if that is news."""
        with self._news:
            is_news = remark != self._told and not self._is_over and not self._is_paused
            self._told = remark
        if is_news:
            if remark:
                log.warning("%s", remark)
            self._listener.on_running(self._number, remark)

    def _tell_paused(self) -> None:
        if not self._is_over:
            self._listener.on_paused(self._number)

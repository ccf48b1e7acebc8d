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
from sparkmirror.backoff import Backoff
from sparkmirror.connect.connector import ExpandedConfig
from sparkmirror.connect.connectors.shared.periodic_task import PeriodicTask
from sparkmirror.connect.task_group import TaskListener, TaskPlan
from sparkmirror.errors import ClusterError

log = logging.getLogger(__name__)

PeriodicTaskFactory = Callable[[ExpandedConfig], PeriodicTask]
"""Makes the work of a task; may raise ConfigError, which fails the task."""

RESTART_TIMEOUT_S = 5.0
_MAX_WAIT_S = 3600.0


class ThreadTaskGroup:
    """A TaskGroup. Its tasks have nothing to do with one another."""

    def __init__(self, connector: str, listener: TaskListener, make: PeriodicTaskFactory) -> None:
        self._connector = connector
        self._listener = listener
        self._create_task = make
        self._tasks: dict[int, _TaskThread] = {}
        self._is_paused = False

    def start(self, plan: TaskPlan, *, paused: bool) -> None:
        """Begin every task."""
        self._is_paused = paused
        for number, config in enumerate(plan.tasks):
            self._start_task(number, config)

    def reassign(self, plan: TaskPlan) -> None:
        """Go on with another plan; a task that can take its new config is not interrupted."""
        for number in sorted(self._tasks.keys() - set(range(len(plan.tasks)))):
            self._tasks.pop(number).stop(RESTART_TIMEOUT_S)
            self._listener.on_stopped(number)
        for number, config in enumerate(plan.tasks):
            task = self._tasks.get(number)
            if task is None or not task.reconfigure(config):
                self.restart({number: config})

    def pause(self) -> None:
        """Hold still."""
        self._is_paused = True
        for task in self._tasks.values():
            task.set_paused(paused=True)

    def resume(self) -> None:
        """Go on."""
        self._is_paused = False
        for task in self._tasks.values():
            task.set_paused(paused=False)

    def restart(self, tasks: Mapping[int, ExpandedConfig]) -> None:
        """Begin these tasks anew."""
        for number, config in tasks.items():
            if number in self._tasks:
                self._tasks.pop(number).stop(RESTART_TIMEOUT_S)
            self._start_task(number, config)

    def stop(self, within_s: float) -> None:
        """End all tasks; one that hangs is left behind and says nothing any more."""
        deadline = time.monotonic() + within_s
        for task in self._tasks.values():
            task.request_stop()
        for number, task in self._tasks.items():
            task.stop(deadline - time.monotonic())
            self._listener.on_stopped(number)
        self._tasks.clear()

    def _start_task(self, number: int, config: ExpandedConfig) -> None:
        task = _TaskThread(self._connector, number, config, self._create_task, self._listener)
        self._tasks[number] = task
        task.set_paused(paused=self._is_paused)
        task.start()


class _TaskThread:
    """One task and its thread."""

    def __init__(
        self,
        connector: str,
        number: int,
        config: ExpandedConfig,
        make: PeriodicTaskFactory,
        listener: TaskListener,
    ) -> None:
        self._connector = connector
        self._number = number
        self._config = config
        self._create_task = make
        self._listener = listener
        self._condition = threading.Condition()
        self._is_paused = False
        self._is_stopping = False
        self._pending_config: ExpandedConfig | None = None
        self._change_count = 0
        """How often something else was wanted; the thread waits only if it has seen to them all."""
        self._seen_changes = 0
        self._last_reported: str | None = None
        self._backoff = Backoff(initial_s=0.5, max_s=30.0)
        name = f"task-thread-{connector}-{number}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def set_paused(self, *, paused: bool) -> None:
        """Hold still, or go on."""
        with self._condition:
            self._is_paused, self._last_reported = paused, None
            self._change_count += 1
            self._condition.notify()

    def reconfigure(self, config: ExpandedConfig) -> bool:
        """Go on with another config; False if the task is no more, or needs a new beginning."""
        with self._condition:
            if self._is_stopping or not self._thread.is_alive():
                return False
            self._pending_config, self._last_reported = config, None
            self._change_count += 1
            self._condition.notify()
        return True

    def request_stop(self) -> None:
        """Have it end after the turn it is in."""
        with self._condition:
            self._is_stopping = True
            self._condition.notify()

    def stop(self, within_s: float) -> None:
        """End it."""
        self.request_stop()
        if self._thread.is_alive():
            self._thread.join(timeout=max(within_s, 0.0))

    # -- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        with logs.context(connector=self._connector, task=self._number):
            try:
                while not self._is_stopping:
                    self._run_instance()
            except Exception as error:  # noqa: BLE001  whatever it is, it makes the task FAILED
                if not self._is_stopping:
                    self._listener.on_failed(self._number, error)

    def _run_instance(self) -> None:
        """Work until it is over, or until a config came that takes a new beginning."""
        work = self._create_task(self._config)
        has_begun = False
        try:
            while not self._is_stopping:
                self._seen_changes = self._change_count
                if self._pending_config is not None and not self._apply_config(work):
                    return
                if self._is_paused:
                    self._report_paused()
                    self._wait(_MAX_WAIT_S)
                elif not has_begun:
                    has_begun = self._try_step(work.start)
                elif self._try_step(work.run_due):
                    self._report(work)
                    self._wait(work.next_run_in_s())
        finally:
            work.close()

    def _apply_config(self, work: PeriodicTask) -> bool:
        with self._condition:
            config, self._pending_config = self._pending_config, None
        assert config is not None
        self._config = config
        return work.reconfigure(config)

    def _try_step(self, step: Callable[[], None]) -> bool:
        """Try something; if a cluster is in trouble, say so and wait a while, longer each time."""
        try:
            step()
        except ClusterError as error:
            self._report_running(str(error))
            self._wait(self._backoff.next_delay_s())
            return False
        self._backoff.reset()
        return True

    def _wait(self, seconds: float) -> None:
        with self._condition:
            self._condition.wait_for(
                lambda: self._is_stopping or self._change_count != self._seen_changes,
                timeout=seconds,
            )

    def _report(self, work: PeriodicTask) -> None:
        self._report_running(work.current_problem())
        topics = work.written_topics()
        if topics:
            self._listener.on_topics(self._number, topics)

    def _report_running(self, remark: str) -> None:
        """Tell how it goes, if that is news."""
        with self._condition:
            is_news = (
                remark != self._last_reported and not self._is_stopping and not self._is_paused
            )
            self._last_reported = remark
        if is_news:
            if remark:
                log.warning("%s", remark)
            self._listener.on_running(self._number, remark)

    def _report_paused(self) -> None:
        if not self._is_stopping:
            self._listener.on_paused(self._number)

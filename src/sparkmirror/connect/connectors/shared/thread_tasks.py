"""Tasks as threads of the worker: those of the checkpoint and heartbeat connectors.

start ──▶ run_due ──▶ wait ──▶ run_due ...        paused: the thread only waits
  └─────────┴── ClusterError: reported as a problem, tried again after a pause
            └── any other error: the task is FAILED

A step that takes long reports why its calls are tried again. A stop lets the current step end; if
that takes long, it cancels the calls.

`PeriodicTask` is what the two connectors implement; `ThreadTaskGroup` runs them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from sparkmirror import logging_context
from sparkmirror.backoff import Backoff, seconds_left
from sparkmirror.connect.connector import ExpandedConfig
from sparkmirror.connect.task_group import TaskListener, TaskPlan
from sparkmirror.errors import ClusterError

log = logging.getLogger(__name__)


class RetryingClient(Protocol):
    """The client of one cluster. Only the task's thread uses it, except for `cancel`."""

    on_retry: Callable[[ClusterError], None]
    """Called with every error after which a call is tried again."""

    def cancel(self) -> None:
        """End the running call and all later ones with CallCancelled."""


class PeriodicTask(Protocol):
    """The work of one task. One thread calls it, one method at a time.

    A ClusterError of `start` or `run_due` is reported as a problem, and the call is repeated. Any
    other error ends the task.
    """

    def start(self) -> None:
        """Prepare. Called once before the first `run_due`, and again after a ClusterError."""
        ...

    def run_due(self) -> None:
        """Do what is due now."""
        ...

    def next_run_in_s(self) -> float:
        """Return the seconds until something is due."""
        ...

    def current_problem(self) -> str:
        """Return what does not work at the moment, as text for operators; empty if all works."""
        ...

    def written_topics(self) -> frozenset[str]:
        """Return the topics that were written to so far."""
        ...

    def clients(self) -> Sequence[RetryingClient]:
        """Return the clients that the steps use."""
        ...

    def reconfigure(self, config: ExpandedConfig) -> bool:
        """Continue with another config; return False if that needs a new instance."""
        ...

    def close(self) -> None:
        """Release everything. Also called if `start` failed."""
        ...


PeriodicTaskFactory = Callable[[ExpandedConfig], PeriodicTask]
"""Creates the work of a task. It may raise ConfigError, which fails the task."""

RESTART_TIMEOUT_S = 5.0
SLOW_STEP_S = 2.0
"""After this time a step reports why its calls are tried again."""
STEP_END_TIMEOUT_S = 1.0
"""How long a stop waits for the current step before it cancels the calls."""
_MAX_WAIT_S = 3600.0


class ThreadTaskGroup:
    """A TaskGroup whose tasks are independent threads."""

    def __init__(
        self, connector: str, listener: TaskListener, create_task: PeriodicTaskFactory
    ) -> None:
        self._connector = connector
        self._listener = listener
        self._create_task = create_task
        self._tasks: dict[int, _TaskThread] = {}
        self._is_paused = False

    def start(self, plan: TaskPlan, *, paused: bool) -> None:
        """Start every task."""
        self._is_paused = paused
        for number, config in plan.tasks.items():
            self._start_task(number, config)

    def reassign(self, plan: TaskPlan) -> None:
        """Continue with another plan. A task that accepts its new config is not restarted."""
        for number in sorted(self._tasks.keys() - plan.tasks.keys()):
            self._tasks.pop(number).stop(RESTART_TIMEOUT_S)
            self._listener.on_stopped(number)
        for number, config in plan.tasks.items():
            task = self._tasks.get(number)
            if task is None or not task.reconfigure(config):
                self._restart_task(number, config)

    def pause(self) -> None:
        """Pause every task after its current step."""
        self._is_paused = True
        for task in self._tasks.values():
            task.set_paused(paused=True)

    def resume(self) -> None:
        """Resume every task."""
        self._is_paused = False
        for task in self._tasks.values():
            task.set_paused(paused=False)

    def restart(self, plan: TaskPlan, tasks: Collection[int]) -> None:
        """Restart these tasks, with their configs of the plan."""
        for number in tasks:
            self._restart_task(number, plan.tasks[number])

    def _restart_task(self, number: int, config: ExpandedConfig) -> None:
        if number in self._tasks:
            self._tasks.pop(number).stop(RESTART_TIMEOUT_S)
        self._start_task(number, config)

    def stop(self, timeout_s: float) -> None:
        """Stop all tasks. A task that hangs is left behind and reports nothing more."""
        deadline = time.monotonic() + timeout_s
        for task in self._tasks.values():
            task.request_stop()
        cancel_at = min(time.monotonic() + STEP_END_TIMEOUT_S, deadline)
        for task in self._tasks.values():
            task.join(cancel_at)
        for task in self._tasks.values():
            task.cancel()
        for number, task in self._tasks.items():
            task.join(deadline)
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
        create_task: PeriodicTaskFactory,
        listener: TaskListener,
    ) -> None:
        self._connector = connector
        self._number = number
        self._config = config
        self._create_task = create_task
        self._listener = listener
        self._condition = threading.Condition()
        self._is_paused = False
        self._is_stopping = False
        self._pending_config: ExpandedConfig | None = None
        self._change_count = 0
        """Counts pauses, resumes and new configs. The thread waits only if it has seen them all."""
        self._seen_changes = 0
        self._last_reported: str | None = None
        self._clients: Sequence[RetryingClient] = ()
        self._step_began = 0.0
        self._backoff = Backoff(initial_s=0.5, max_s=30.0)
        name = f"task-thread-{connector}-{number}"
        self._thread = logging_context.ContextThread(target=self._run, name=name)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def set_paused(self, *, paused: bool) -> None:
        """Pause or resume."""
        with self._condition:
            self._is_paused, self._last_reported = paused, None
            self._change_count += 1
            self._condition.notify()

    def reconfigure(self, config: ExpandedConfig) -> bool:
        """Hand over another config; return False if the thread has ended."""
        with self._condition:
            if self._is_stopping or not self._thread.is_alive():
                return False
            self._pending_config, self._last_reported = config, None
            self._change_count += 1
            self._condition.notify()
        return True

    def request_stop(self) -> None:
        """End the thread after its current step."""
        with self._condition:
            self._is_stopping = True
            self._condition.notify()

    def stop(self, timeout_s: float) -> None:
        """End the thread and wait for it."""
        now = time.monotonic()
        self.request_stop()
        self.join(now + min(STEP_END_TIMEOUT_S, timeout_s))
        self.cancel()
        self.join(now + timeout_s)

    def join(self, deadline: float) -> None:
        """Wait for the end of the thread."""
        if self._thread.is_alive():
            self._thread.join(timeout=seconds_left(deadline))

    def cancel(self) -> None:
        """Cancel the calls of the current step. The task must be stopping."""
        assert self._is_stopping
        for client in self._clients:
            client.cancel()

    # -- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        with logging_context.context(connector=self._connector, task=self._number):
            try:
                while not self._is_stopping:
                    self._run_instance()
            except Exception as error:  # noqa: BLE001  any error makes the task FAILED
                if not self._is_stopping:
                    self._listener.on_failed(self._number, error)

    def _run_instance(self) -> None:
        """Run one instance until the task stops or a new config needs another instance."""
        task = self._create_task(self._config)
        self._clients = task.clients()
        for client in self._clients:
            client.on_retry = self._on_retry
        has_started = False
        try:
            while not self._is_stopping:
                self._seen_changes = self._change_count
                if self._pending_config is not None and not self._apply_config(task):
                    return
                if self._is_paused:
                    self._report_paused()
                    self._wait(_MAX_WAIT_S)
                elif not has_started:
                    has_started = self._try_step(task.start)
                elif self._try_step(task.run_due):
                    self._report(task)
                    self._wait(task.next_run_in_s())
        finally:
            task.close()

    def _apply_config(self, task: PeriodicTask) -> bool:
        with self._condition:
            config, self._pending_config = self._pending_config, None
        assert config is not None
        self._config = config
        return task.reconfigure(config)

    def _try_step(self, step: Callable[[], None]) -> bool:
        """Return whether the step succeeded. After a ClusterError, report it and wait."""
        self._step_began = time.monotonic()
        try:
            step()
        except ClusterError as error:
            self._report_running(str(error))
            self._wait(self._backoff.next_delay_s())
            return False
        self._backoff.reset()
        return True

    def _on_retry(self, error: ClusterError) -> None:
        if time.monotonic() - self._step_began > SLOW_STEP_S:
            self._report_running(str(error))

    def _wait(self, seconds: float) -> None:
        with self._condition:
            self._condition.wait_for(
                lambda: self._is_stopping or self._change_count != self._seen_changes,
                timeout=seconds,
            )

    def _report(self, task: PeriodicTask) -> None:
        self._report_running(task.current_problem())
        topics = task.written_topics()
        if topics:
            self._listener.on_topics(self._number, topics)

    def _report_running(self, problem: str) -> None:
        """Report RUNNING if the problem differs from the last report."""
        with self._condition:
            has_changed = (
                problem != self._last_reported and not self._is_stopping and not self._is_paused
            )
            self._last_reported = problem
        if has_changed:
            if problem:
                log.warning("%s", problem)
            self._listener.on_running(self._number, problem)

    def _report_paused(self) -> None:
        if not self._is_stopping:
            self._listener.on_paused(self._number)

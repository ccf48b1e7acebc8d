"""A copy job without Spark: the conductor in this process, each task a process of its own."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from sparkmirror.copy.control.handshake import preferred_protocol
from sparkmirror.copy.control.messages import EpochAssignment, RequestEpoch
from sparkmirror.copy.driver.conductor import Conductor
from sparkmirror.copy.driver.run_map_store import RunMapStore
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.ledger import Ledger
from sparkmirror.copy.snapshot import CopyEvent, CopySnapshot
from sparkmirror.engine.driver.control.control_server import ControlServer
from sparkmirror.errors import MirrorError
from tests.support.copy.control_client import ControlClient
from tests.support.copy.forked_process import ForkedProcess
from tests.support.copy.task_process import run_task
from tests.support.waiting import wait_until

NEVER_S = 1e9
HARNESS_JOB = ""
"""The name of the job. The harness itself starts its tasks, in processes instead of slots."""
HARNESS_TIMEOUT_S = 120.0
"""Enough for any step on a slow computer."""
MEMBERSHIP_S = 60.0
"""For how long a renewal makes the worker a member: longer than a slow computer needs."""
RENEWAL_INTERVAL_S = 1.0
SHORT_TASK_TIMEOUT_S = 2.0
"""The task timeout while `expire_silent_tasks` waits."""


class CopyHarness:
    """Runs one job: `with CopyHarness(job, ledger) as harness:`. Restarts tasks that end."""

    def __init__(self, job: CopyJob, ledger: Ledger, runs: RunMapStore | None = None) -> None:
        self.job = job
        self.conductor = Conductor(job, ledger, runs)
        self.tasks: dict[int, ForkedProcess] = {}
        self.superseded_attempts: list[ForkedProcess] = []
        """Attempts for which a duplicate was started; they may still run."""
        self.restart_tasks = True
        self.is_member = job.is_shared
        """Whether the worker of a shared job is a member of its group: the harness renews it."""
        self._attempts: dict[int, int] = {}
        self._control_server = ControlServer(
            epoch_s=NEVER_S,
            first_epoch_s=NEVER_S,
            protocol=preferred_protocol(),
            bind="127.0.0.1",
        )
        self._closing = False
        self._restarter = threading.Thread(target=self._restart_dead_tasks, daemon=True)
        self._renewer = threading.Thread(target=self._renew_membership, daemon=True)

    def __enter__(self) -> CopyHarness:
        self._renewer.start()
        self._start_conductor()
        self._control_server.set_job(HARNESS_JOB, self.conductor, ())
        self._control_server.start()
        self._start_epoch()
        for task in self.job.tasks:
            self._start_task(task)
        self._restarter.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing = True
        for process in (*self.tasks.values(), *self.superseded_attempts):
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()
        self._restarter.join(timeout=10)
        self._renewer.join(timeout=10)
        self.conductor.stop()
        self._control_server.close()

    @property
    def snapshot(self) -> CopySnapshot:
        failure = self.conductor.failure() or self._control_server.failure()
        if failure:
            raise failure
        return self.conductor.snapshot()

    def wait_for_snapshot(
        self,
        reason: str,
        condition: Callable[[CopySnapshot], bool],
        timeout_s: float = HARNESS_TIMEOUT_S,
    ) -> None:
        """Wait until the condition holds for the snapshot."""
        wait_until(lambda: condition(self.snapshot), reason, timeout_s)

    def wait_until_caught_up(
        self, ends: dict[str, int], timeout_s: float = HARNESS_TIMEOUT_S
    ) -> None:
        """Wait until every partition has reached its end offset."""

        def passed(snapshot: CopySnapshot) -> bool:
            return all(snapshot.partitions[key].position >= end for key, end in ends.items())

        self.wait_for_snapshot("everything to be copied", passed, timeout_s)

    def wait_until_all_tasks_copy(self) -> None:
        """Wait until every task has copied records."""

        def all_copied(snapshot: CopySnapshot) -> bool:
            busy = {view.task for view in snapshot.partitions.values() if view.records}
            return len(busy) == len(self.job.tasks)

        self.wait_for_snapshot("every task to copy", all_copied)

    def wait_for_more_records(self) -> None:
        """Wait until more records are copied than now."""
        before = self.snapshot.records
        self.wait_for_snapshot("more to be copied", lambda seen: seen.records > before)

    def wait_for_attempts(self, number: int, timeout_s: float = HARNESS_TIMEOUT_S) -> None:
        """Wait until every task has an attempt with at least this number; the first one is 0."""
        wait_until(lambda: min(self._attempts.values()) >= number, f"attempts {number}", timeout_s)

    def drain(self, timeout_s: float = HARNESS_TIMEOUT_S) -> None:
        """Drain the job; wait until every lease is returned."""
        self.restart_tasks = False
        self.conductor.drain()
        wait_until(self.conductor.is_drained, "the tasks to drain", timeout_s)

    def replan(self, job: CopyJob) -> None:
        """Continue with another job; start the tasks that are new."""
        self.job = job
        self.conductor.replan(job)
        for task in job.tasks.keys() - self.tasks.keys():
            self._start_task(task)

    def give_back(self, job: CopyJob) -> None:
        """Continue with another job; wait until the partitions that left it are given back."""
        self.replan(job)
        wanted = {str(partition) for partition in job.task_of_partition()}
        self.wait_for_snapshot(
            "the partitions to be given back", lambda seen: seen.partitions.keys() == wanted
        )

    def lose_membership(self) -> None:
        """End the membership of the worker in its group."""
        self.is_member = False
        self.conductor.renew_membership(0.0, is_alone=False)

    def kill(self, task: int) -> None:
        """Kill a task process."""
        self.tasks[task].kill()

    def suspend(self, task: int) -> None:
        """Suspend a task process: it keeps its connections and sends nothing."""
        self.tasks[task].send_signal(signal.SIGSTOP)

    def resume(self, task: int) -> None:
        """Resume a suspended task process."""
        self.tasks[task].send_signal(signal.SIGCONT)

    def expire_silent_tasks(self) -> None:
        """Shorten the task timeout until the driver has replaced suspended tasks."""
        self.conductor.replan(replace(self.conductor.job, task_timeout_s=SHORT_TASK_TIMEOUT_S))
        self.wait_for_event("takeover")
        self.conductor.replan(replace(self.conductor.job, task_timeout_s=self.job.task_timeout_s))

    def start_duplicate_attempt(self, task: int) -> ForkedProcess:
        """Start another attempt of a task; return the earlier one, which still runs."""
        before = self.tasks[task]
        self.superseded_attempts.append(before)
        self._start_task(task)
        return before

    def wait_for_event(self, kind: str, times: int = 1) -> CopyEvent:
        """Wait for `times` events of a kind; return the first one."""
        self.wait_for_snapshot(
            kind, lambda seen: sum(one.kind == kind for one in seen.events) >= times
        )
        return next(one for one in self.snapshot.events if one.kind == kind)

    def _start_conductor(self) -> None:
        """Start the conductor; retry as a driver does while a cluster is unreachable."""
        deadline = time.monotonic() + HARNESS_TIMEOUT_S
        while True:
            try:
                self.conductor.start()
            except MirrorError as error:
                if not error.retriable or time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
            else:
                return

    def _start_epoch(self) -> None:
        """Start the only epoch, as Spark's query does."""
        with ControlClient(self._control_server.endpoint) as query:
            query.send(RequestEpoch(finished_epoch=0))
            query.receive(EpochAssignment)

    def _start_task(self, task: int) -> None:
        attempt = self._attempts[task] = self._attempts.get(task, -1) + 1
        endpoint = self._control_server.endpoint
        self.tasks[task] = ForkedProcess(
            run_task,
            (endpoint.host, endpoint.port),
            endpoint.protocol,
            endpoint.secret,
            task,
            attempt,
        )

    def _renew_membership(self) -> None:
        while not self._closing:
            if self.is_member:
                self.conductor.renew_membership(time.monotonic() + MEMBERSHIP_S, is_alone=False)
            threading.Event().wait(RENEWAL_INTERVAL_S)

    def _restart_dead_tasks(self) -> None:
        while not self._closing:
            for task, process in list(self.tasks.items()):
                if process.poll() is not None and self.restart_tasks and not self._closing:
                    self._start_task(task)
            threading.Event().wait(0.1)

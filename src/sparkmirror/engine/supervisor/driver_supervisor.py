"""The supervisor of a driver: keeps one spec running, by one driver process after the other.

    with DriverSupervisor(spec) as supervisor:
        for status in supervisor.statuses():
            if ...:
                supervisor.drain()

Starts the driver and reads its statuses. When the driver or its JVM dies, starts another one after
a pause. Never loads Spark. When this process dies the driver drains and ends.
"""

from __future__ import annotations

import logging
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Self

from sparkmirror.backoff import Backoff
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.snapshot import CopySnapshot, starting_snapshot
from sparkmirror.engine.supervisor.driver_command import DriverAction, DriverCommand
from sparkmirror.engine.supervisor.driver_process import DriverProcess
from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.engine.supervisor.driver_status import SILENT_S, DriverPhase, DriverStatus
from sparkmirror.errors import DriverLost, MirrorError

log = logging.getLogger(__name__)

DRIVER_MODULE = "sparkmirror.engine.driver.driver_main"
STATUS_TIMEOUT_S = 60.0
"""A driver without a status for so long is killed."""
SILENT_AT_START_S = 10.0
"""The same for a driver that has not reached RUNNING. It shows no lag, and it starts a JVM."""
DRAIN_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 20.0
STABLE_RUN_S = 60.0
"""After a run of this length the pause before the next driver is short again."""
MAX_FAILED_STARTS = 3
"""After so many drivers in a row that never reached RUNNING, the supervisor gives up."""


class DriverSupervisor:
    """Keeps one spec running.

    One thread owns it. Other threads may call `set_log_levels`, `status` and `statuses`.
    """

    def __init__(
        self, spec: DriverSpec, *, module: str = DRIVER_MODULE, backoff: Backoff | None = None
    ) -> None:
        """`module` is the Python module that the driver process runs."""
        self._spec = spec.with_absolute_paths()
        self._module = module
        self._backoff = backoff or Backoff(initial_s=1.0, max_s=60.0)
        self._condition = threading.Condition()
        self._status = DriverStatus(
            phase=DriverPhase.STARTING,
            tasks=len(spec.job.tasks),
            snapshot=starting_snapshot(spec.job),
        )
        self._status_number = 0
        self._process: DriverProcess | None = None
        self._has_reached_running = False
        self._failed_starts = 0
        self._should_run = True
        self._final_command: DriverCommand | None = None
        self._is_finished = False
        self._end_deadline = float("inf")
        self._failure: MirrorError | None = None
        self._thread = threading.Thread(target=self._run, name="driver-supervisor", daemon=True)

    def start(self) -> None:
        """Start the thread; returns at once."""
        self._thread.start()

    @property
    def status(self) -> DriverStatus:
        """The latest status."""
        return self._status

    def statuses(self) -> Iterator[DriverStatus]:
        """Every new status (a slow reader gets only the latest), until the supervisor has ended."""
        seen = 0
        while True:
            with self._condition:
                while self._status_number == seen and not self._is_finished:
                    self._condition.wait()
                if self._status_number == seen:
                    return
                seen, status = self._status_number, self._status
            yield status

    def failure(self) -> MirrorError | None:
        """Why the supervisor has given up, if it has."""
        return self._failure

    def set_rate(self, bytes_per_s: int) -> None:
        """Limit every task to so many bytes per second; 0 means no limit. Later drivers keep it."""
        with self._condition:
            settings = replace(self._spec.job.settings, bytes_per_s=bytes_per_s)
            self._spec = replace(self._spec, job=replace(self._spec.job, settings=settings))
            self._send_command(DriverCommand(action=DriverAction.SET_RATE, bytes_per_s=bytes_per_s))

    def replan(self, job: CopyJob) -> None:
        """Continue with another job of the same connector. A job without tasks pauses the copy.

        Later drivers start with it.
        """
        with self._condition:
            self._spec = replace(self._spec, job=job)
            self._send_command(DriverCommand(action=DriverAction.REPLAN, job=job))

    def set_log_levels(self, levels: Mapping[str, int]) -> None:
        """Set Python loggers of the driver and its tasks. Later drivers start with the levels."""
        with self._condition:
            known = {**self._spec.log_levels, **levels}
            self._spec = replace(self._spec, log_levels=known)
            self._send_command(
                DriverCommand(action=DriverAction.SET_LOG_LEVELS, log_levels=dict(levels))
            )

    def start_next_epoch(self) -> None:
        """End the epoch, so that every task starts again."""
        with self._condition:
            self._send_command(DriverCommand(action=DriverAction.NEXT_EPOCH))

    def drain(self, within_s: float = DRAIN_TIMEOUT_S) -> None:
        """Have the driver finish and end; returns at once. `statuses` ends with the driver."""
        self._request_end(DriverCommand(action=DriverAction.DRAIN), within_s)

    def wait(self, timeout_s: float) -> None:
        """Wait until the supervisor has ended, at most so long."""
        if self._thread.ident:
            self._thread.join(timeout=timeout_s)

    def stop(self, within_s: float = STOP_TIMEOUT_S) -> None:
        """End the driver now; returns when no process is left."""
        if not self._thread.ident:
            return
        self._request_end(DriverCommand(action=DriverAction.STOP), within_s)
        self._thread.join(timeout=within_s)
        if self._thread.is_alive() and self._process:
            log.warning(
                "Killing the Spark driver of %s: it did not end within %.0f s",
                self._spec.job.connector,
                within_s,
            )
            self._process.kill()
            self._thread.join(timeout=STOP_TIMEOUT_S)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # -- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while self._should_run and not self._failure:
                began = time.monotonic()
                with tempfile.TemporaryDirectory(
                    prefix="sparkmirror-", ignore_cleanup_errors=True
                ) as temporary:
                    code = self._run_driver(Path(temporary))
                if self._should_run:
                    self._restart_or_give_up(code, time.monotonic() - began)
        except OSError as error:
            self._give_up(MirrorError(f"cannot start the Spark driver: {error}"))
        finally:
            with self._condition:
                self._is_finished = True
                self._condition.notify_all()

    def _run_driver(self, temporary: Path) -> int:
        """Start a driver and read its statuses until it has ended; returns its exit code."""
        process = DriverProcess(self._module, temporary, Path(self._spec.log))
        with self._condition:
            process.write_line(self._spec.to_line())
            self._has_reached_running = False
            self._process = process
            if self._final_command:  # it was given before this driver started
                self._send_command(self._final_command)
        left_s = 0.0
        try:
            seen = CopySnapshot()
            for line in process.read_lines(self._read_timeout_s):
                status = DriverStatus.from_line(line, seen)
                seen = status.snapshot
                self._publish(status)
            left_s = STOP_TIMEOUT_S if self._should_run else self._end_deadline - time.monotonic()
        finally:
            code = process.shut_down(max(left_s, 0.0))
        return code

    def _read_timeout_s(self, silent_s: float) -> float:
        """Return how long to wait for the next status; publish that the driver is silent."""
        limit_s = SILENT_S if self._has_reached_running else SILENT_AT_START_S
        if silent_s > limit_s and self._should_run:
            problem = (
                f"the Spark driver has sent no status for {limit_s:.0f} s; after"
                f" {STATUS_TIMEOUT_S:.0f} s it is killed and started again; see {self._spec.log}"
            )
            self._publish_stalled(self._status.phase, problem)
        return min(STATUS_TIMEOUT_S - silent_s, self._end_deadline - time.monotonic())

    def _restart_or_give_up(self, code: int, lasted_s: float) -> None:
        """After an end that was not requested: wait for the next driver, or set `_failure`."""
        last = self._status
        why = f"the Spark driver ended with code {code}; see {self._spec.log}"
        if last.phase is DriverPhase.FAILED and last.problem:
            why = last.problem
        self._failed_starts = 0 if self._has_reached_running else self._failed_starts + 1
        is_final = last.phase is DriverPhase.FAILED and not last.is_retriable
        if is_final or self._failed_starts >= MAX_FAILED_STARTS:
            self._give_up(MirrorError(why) if is_final else DriverLost(why))
            return
        if lasted_s > STABLE_RUN_S:
            self._backoff.reset()
        pause_s = self._backoff.next_delay_s()
        log.warning(
            "Connector %s: %s; the next driver starts in %.0f s",
            self._spec.job.connector,
            why,
            pause_s,
        )
        self._publish_stalled(DriverPhase.RESTARTING, why)
        with self._condition:
            self._condition.wait_for(lambda: not self._should_run, timeout=pause_s)

    def _give_up(self, failure: MirrorError) -> None:
        self._failure = failure
        self._publish_stalled(DriverPhase.FAILED, str(failure))

    def _publish_stalled(self, phase: DriverPhase, problem: str) -> None:
        """Publish that no driver reports: what the last one said of the source is not known now."""
        last = self._status
        self._publish(
            replace(
                last,
                phase=phase,
                problem=problem,
                slots=last.slots if phase is last.phase else 0,
                snapshot=last.snapshot.while_stalled(problem),
            )
        )

    def _publish(self, status: DriverStatus) -> None:
        with self._condition:
            self._has_reached_running |= status.phase is DriverPhase.RUNNING
            self._status = status
            self._status_number += 1
            self._condition.notify_all()

    # -- ending ---------------------------------------------------------------------------------

    def _send_command(self, command: DriverCommand) -> None:
        if self._process:
            self._process.write_line(command.to_line())

    def _request_end(self, command: DriverCommand, within_s: float) -> None:
        with self._condition:
            self._should_run, self._final_command = False, command
            self._end_deadline = min(self._end_deadline, time.monotonic() + within_s)
            self._send_command(command)
            self._condition.notify_all()

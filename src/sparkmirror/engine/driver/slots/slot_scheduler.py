"""Runs the tasks of all connectors in the slots of the running epoch, one attempt after the other.

The control server reports slots that connect and disappear, and tasks that end. `poll` starts every
wanted task that does not run, drains every task that is not wanted any more, and moves tasks to
slots that connect later. A task that fails is started again after a pause that grows; it concerns
no other task.

At a change of epochs slots may be kept: their tasks copy on. A Spark task of the next epoch adopts
a kept slot if Spark runs it in the same process. A slot that no Spark task adopts, because all
slots of the epoch are connected without it or because it takes too long, is released: its tasks are
drained, and start again in other slots. So a task never has two attempts that copy.

No I/O, no clock, no threads: the control server's event loop owns the scheduler.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from sparkmirror.backoff import Backoff
from sparkmirror.copy.control.messages import SlotHello, StartTask, TaskEnded
from sparkmirror.engine.driver.slots.slot_assignment import (
    TaskKey,
    choose_slots,
    slots_needed,
    tasks_to_move,
)

SETTLE_S = 1.0
"""How long the first tasks of an epoch wait until every slot is connected."""
KEPT_SLOT_TIMEOUT_S = 20.0
"""How long a kept slot waits for a Spark task. Spark kills a process that is idle for a minute."""
STABLE_RUN_S = 60.0
"""After an attempt of this length the pause before the next one is short again."""


@dataclass(slots=True)
class TaskRun:
    """An attempt of a task that runs in a slot."""

    slot: SlotHello
    attempt: int
    started_at: float
    is_draining: bool = False


@dataclass(slots=True)
class KeptSlot:
    """A slot of an earlier epoch whose tasks copy on."""

    since: float
    is_released: bool = False
    """Whether it must end, because no Spark task has adopted it in time."""


@dataclass(slots=True)
class TaskFailure:
    """Why the last attempt of a task failed, and when the next one may start."""

    error: str
    retry_at: float
    backoff: Backoff


@dataclass(slots=True)
class SlotScheduler:
    """Knows every slot, every wanted task and every attempt."""

    start_task: Callable[[SlotHello, StartTask], None]
    """Have a slot start an attempt."""
    drain_tasks: Callable[[str, Collection[int]], None]
    """Have the conductor of a job drain these tasks."""
    release_slot: Callable[[SlotHello], None]
    """Have a kept slot end when its tasks have ended."""
    available: int = 1
    """How many slots Spark has for tasks."""
    slot_count: int = 0
    """How many slots the running epoch has."""
    failures: dict[TaskKey, TaskFailure] = field(default_factory=dict)
    _wanted: dict[TaskKey, str] = field(default_factory=dict)
    """The wanted tasks, with the flow of their job."""
    _slots: dict[SlotHello, None] = field(default_factory=dict)
    """The connected slots of the running epoch."""
    _kept: dict[SlotHello, KeptSlot] = field(default_factory=dict)
    """The connected slots of earlier epochs."""
    _runs: dict[TaskKey, TaskRun] = field(default_factory=dict)
    _attempts: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    _retries: Counter[TaskKey] = field(default_factory=Counter)
    _first_slot_at: float = float("inf")
    _is_open: bool = False
    _is_settled: bool = False

    # -- what is wanted --------------------------------------------------------------------------

    def set_tasks(self, job: str, flow: str, tasks: Collection[int]) -> None:
        """Run exactly these tasks of a job from now on."""
        self._wanted = {key: each for key, each in self._wanted.items() if key.job != job}
        self._wanted |= dict.fromkeys((TaskKey(job, task) for task in tasks), flow)
        self.failures = {
            key: failure
            for key, failure in self.failures.items()
            if key.job != job or key in self._wanted
        }

    def restart(self, job: str, tasks: Collection[int]) -> None:
        """Drain these tasks; `poll` starts them again. A task that waits for a retry starts now."""
        for task in tasks:
            self.failures.pop(TaskKey(job, task), None)
        self._drain([key for key in self._runs if key.job == job and key.task in tasks])

    def forget(self, job: str) -> None:
        """Drop a job and its attempts, which end when their connections are closed."""
        self.set_tasks(job, "", ())
        for key in [key for key in self._runs if key.job == job]:
            del self._runs[key]

    def slots_needed(self, tasks: int) -> int:
        """Return how many slots the next epoch needs for so many tasks."""
        return slots_needed(tasks, self.available, self.slot_count)

    # -- epochs and slots ------------------------------------------------------------------------

    def begin_epoch(self, slots: int) -> list[SlotHello]:
        """Begin an epoch with so many slots.

        Returns the slots of earlier epochs that still run and are not kept.
        """
        left = list(self._slots)
        self.slot_count, self._is_open, self._first_slot_at = slots, True, float("inf")
        self._slots = {}
        self._runs = {key: run for key, run in self._runs.items() if run.slot in self._kept}
        # An attempt that copies on is the first one of its task in the epoch.
        self._retries = Counter(self._runs.keys())
        self._is_settled = False
        return left

    def end_epoch(self) -> list[SlotHello]:
        """Start no more tasks in this epoch; returns its slots."""
        self._is_open = False
        return list(self._slots)

    def keep_slots(self, now: float) -> None:
        """Let the tasks of all slots of the epoch copy on. Call `end_epoch` before."""
        self._kept |= {slot: KeptSlot(now) for slot in self._slots}
        self._slots = {}

    @property
    def has_unadopted_slots(self) -> bool:
        """Whether a kept slot waits for a Spark task of the next epoch."""
        return any(not kept.is_released for kept in self._kept.values())

    def is_kept(self, slot: SlotHello) -> bool:
        """Whether a slot waits for a Spark task of the next epoch."""
        return slot in self._kept and not self._kept[slot].is_released

    def copies_on(self, key: TaskKey, attempt: int, epoch: int) -> bool:
        """Whether an attempt runs in a slot that is kept after this epoch."""
        run = self._runs.get(key)
        if run is None or run.attempt != attempt:
            return False
        return run.slot.epoch == epoch and self.is_kept(run.slot)

    def adopt_slot(self, kept: SlotHello, slot: SlotHello, now: float) -> None:
        """Use a kept slot in the running epoch, under its new hello. Its tasks stay in it."""
        assert self.is_kept(kept)
        del self._kept[kept]
        for run in self._runs.values():
            if run.slot == kept:
                run.slot = slot
        self.add_slot(slot, now)

    def release(self, slot: SlotHello) -> None:
        """End a kept slot after its tasks have given all leases back."""
        self._kept[slot].is_released = True
        self.release_slot(slot)
        self._drain([key for key, run in self._runs.items() if run.slot == slot])

    def add_slot(self, slot: SlotHello, now: float) -> None:
        """Use a slot that has connected."""
        self._first_slot_at = min(self._first_slot_at, now)
        self._slots[slot] = None

    def remove_slot(self, slot: SlotHello) -> None:
        """Run the tasks of a lost slot elsewhere."""
        self._slots.pop(slot, None)
        self._kept.pop(slot, None)
        for key in [key for key, run in self._runs.items() if run.slot == slot]:
            del self._runs[key]

    @property
    def connected(self) -> int:
        """How many slots are connected."""
        return len(self._slots)

    # -- tasks -----------------------------------------------------------------------------------

    def is_outdated(self, key: TaskKey, attempt: int) -> bool:
        """Whether a later attempt of the task was started."""
        run = self._runs.get(key)
        return run is not None and run.attempt > attempt

    def is_draining(self, key: TaskKey) -> bool:
        """Whether the running attempt of a task must end."""
        run = self._runs.get(key)
        return run is not None and run.is_draining

    def on_task_ended(self, slot: SlotHello, ended: TaskEnded, now: float) -> None:
        """Note the end of an attempt; after an error, the next one waits."""
        key = TaskKey(ended.job, ended.task)
        run = self._runs.get(key)
        if run is None or run.attempt != ended.attempt or run.slot != slot:
            return  # a later attempt runs already
        del self._runs[key]
        known = self.failures.pop(key, None)
        if not ended.error or key not in self._wanted:
            return
        is_stable = now - run.started_at > STABLE_RUN_S
        backoff = known.backoff if known and not is_stable else Backoff(initial_s=0.2, max_s=30.0)
        self.failures[key] = TaskFailure(ended.error, now + backoff.next_delay_s(), backoff)

    def problems(self, job: str) -> Mapping[int, str]:
        """Return why tasks of a job do not run, by task."""
        return {
            key.task: f"the task failed and is started again: {failure.error}"
            for key, failure in self.failures.copy().items()
            if key.job == job and key not in self._runs
        }

    def poll(self, now: float) -> None:
        """Drain tasks that are not wanted, start those that are, and spread them over the slots."""
        self._drain([key for key in self._runs if key not in self._wanted])
        self._release_unadopted(now)
        if not self._is_open or not self._has_settled(now):
            return
        running = {key: run.slot for key, run in self._runs.items()}
        waiting = [
            key
            for key in self._wanted
            if key not in self._runs
            and (key not in self.failures or now >= self.failures[key].retry_at)
        ]
        for key, slot in choose_slots(waiting, running, self._slots).items():
            self._start(key, slot, now)
        if not waiting and not any(run.is_draining for run in self._runs.values()):
            self._drain(tasks_to_move(running, self._slots))

    def _release_unadopted(self, now: float) -> None:
        is_complete = self._is_open and self.connected >= self.slot_count
        for slot, kept in list(self._kept.items()):
            if not kept.is_released and (is_complete or now >= kept.since + KEPT_SLOT_TIMEOUT_S):
                self.release(slot)

    def _has_settled(self, now: float) -> bool:
        """Whether every slot of the epoch was connected once, or is late."""
        all_connected = self.connected >= self.slot_count
        self._is_settled |= all_connected or now >= self._first_slot_at + SETTLE_S
        return self._is_settled

    def _start(self, key: TaskKey, slot: SlotHello, now: float) -> None:
        attempt = next(self._attempts)
        self._runs[key] = TaskRun(slot, attempt, now)
        retry = self._retries[key]
        self._retries[key] += 1
        self.start_task(
            slot,
            StartTask(
                job=key.job, flow=self._wanted[key], task=key.task, attempt=attempt, retry=retry
            ),
        )

    def _drain(self, keys: Collection[TaskKey]) -> None:
        by_job: dict[str, list[int]] = {}
        for key in keys:
            run = self._runs[key]
            if not run.is_draining:
                run.is_draining = True
                by_job.setdefault(key.job, []).append(key.task)
        for job, tasks in by_job.items():
            self.drain_tasks(job, tasks)

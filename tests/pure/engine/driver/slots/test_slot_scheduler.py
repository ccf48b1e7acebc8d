"""Tasks run in slots: started, moved, drained, and started again when they or their slot fail."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from sparkmirror.copy.control.messages import SlotHello, StartTask, TaskEnded
from sparkmirror.engine.driver.slots.slot_assignment import TaskKey
from sparkmirror.engine.driver.slots.slot_scheduler import (
    KEPT_SLOT_TIMEOUT_S,
    SETTLE_S,
    SlotScheduler,
)

FLOW = "A->B"


def slot(number: int, attempt: int = 0) -> SlotHello:
    return SlotHello(slot=number, attempt=10 * number + attempt, host="h", pid=1, epoch=1)


@dataclass(slots=True)
class ScheduledTasks:
    """A scheduler, and what it asked for."""

    started: list[tuple[int, StartTask]] = field(default_factory=list)
    drained: list[tuple[str, int]] = field(default_factory=list)
    released: list[SlotHello] = field(default_factory=list)
    scheduler: SlotScheduler = field(init=False)
    now: float = 0.0

    def __post_init__(self) -> None:
        self.scheduler = SlotScheduler(self._start, self._drain, self.released.append, available=2)

    def _start(self, where: SlotHello, start: StartTask) -> None:
        self.started.append((where.slot, start))

    def _drain(self, job: str, tasks: Collection[int]) -> None:
        self.drained += [(job, task) for task in tasks]

    def begin(self, slots: int = 2, connected: int | None = None) -> None:
        """Begin an epoch whose slots connect."""
        self.scheduler.begin_epoch(slots)
        for number in range(slots if connected is None else connected):
            self.scheduler.add_slot(slot(number), self.now)

    def poll(self, after_s: float = 0.0) -> list[tuple[int, str, int]]:
        """Poll; return the tasks that started: their slot, job and number."""
        self.now += after_s
        self.started.clear()
        self.scheduler.poll(self.now)
        return [(where, start.job, start.task) for where, start in self.started]

    def end(self, where: int, start: StartTask, error: str = "") -> None:
        """Report the end of an attempt."""
        ended = TaskEnded(job=start.job, task=start.task, attempt=start.attempt, error=error)
        self.scheduler.on_task_ended(slot(where), ended, self.now)


def test_the_tasks_of_several_jobs_run_in_the_slots_of_one_epoch() -> None:
    tasks = ScheduledTasks()
    tasks.scheduler.set_tasks("a", FLOW, (0, 1))
    tasks.scheduler.set_tasks("b", FLOW, (0,))
    assert tasks.poll() == [], "no epoch runs"
    tasks.begin()
    assert tasks.poll() == [(0, "a", 0), (1, "a", 1), (0, "b", 0)]
    tasks.scheduler.set_tasks("c", FLOW, (7,))
    assert tasks.poll() == [(1, "c", 7)]
    assert tasks.drained == []


def test_the_first_tasks_of_an_epoch_wait_shortly_for_late_slots() -> None:
    tasks = ScheduledTasks()
    tasks.scheduler.set_tasks("a", FLOW, (0, 1))
    tasks.begin(slots=2, connected=1)
    assert tasks.poll() == []
    assert tasks.poll(SETTLE_S) == [(0, "a", 0), (0, "a", 1)]
    tasks.scheduler.add_slot(slot(1), tasks.now)
    assert tasks.poll() == []
    assert tasks.drained == [("a", 1)], "it moves to the slot that has connected"


def test_a_task_that_is_not_wanted_any_more_is_drained_once() -> None:
    tasks = ScheduledTasks()
    tasks.scheduler.set_tasks("a", FLOW, (0, 1))
    tasks.begin()
    tasks.poll()
    tasks.scheduler.set_tasks("a", FLOW, (0,))
    tasks.poll()
    tasks.poll()
    assert tasks.drained == [("a", 1)]
    assert tasks.scheduler.is_draining(TaskKey("a", 1))


def test_a_task_that_fails_is_started_again_after_a_pause_that_grows_and_others_go_on() -> None:
    tasks = ScheduledTasks()
    tasks.scheduler.set_tasks("a", FLOW, (0,))
    tasks.scheduler.set_tasks("b", FLOW, (0,))
    tasks.begin()
    tasks.poll()
    pauses = []
    start = next(start for _, start in tasks.started if start.job == "a")
    for _ in range(4):
        tasks.end(0, start, "no memory")
        assert tasks.poll() == []
        assert tasks.scheduler.problems("a") == {
            0: "the task failed and is started again: no memory"
        }
        assert tasks.scheduler.problems("b") == {}
        pauses.append(tasks.scheduler.failures[TaskKey("a", 0)].retry_at - tasks.now)
        [(_, job, task)] = tasks.poll(pauses[-1])
        assert (job, task) == ("a", 0)
        start = tasks.started[0][1]
    assert start.retry == 4
    assert pauses[-1] > 2 * pauses[0]
    assert tasks.drained == []


def test_the_tasks_of_a_lost_slot_run_elsewhere_with_a_higher_attempt() -> None:
    tasks = ScheduledTasks()
    tasks.scheduler.set_tasks("a", FLOW, (0, 1))
    tasks.begin()
    tasks.poll()
    [lost] = [start for where, start in tasks.started if where == 1]
    tasks.scheduler.remove_slot(slot(1))
    assert tasks.poll() == [(0, "a", 1)]
    assert tasks.scheduler.is_outdated(TaskKey("a", 1), lost.attempt)
    tasks.end(1, lost)
    assert tasks.poll() == [], "the end of the outdated attempt changes nothing"


def test_a_restarted_task_is_drained_and_started_again_without_a_pause() -> None:
    tasks = ScheduledTasks()
    tasks.scheduler.set_tasks("a", FLOW, (0, 1))
    tasks.begin()
    tasks.poll()
    [start] = [start for where, start in tasks.started if where == 0]
    tasks.scheduler.restart("a", (0,))
    assert tasks.drained == [("a", 0)]
    tasks.end(0, start)
    assert tasks.poll() == [(0, "a", 0)]


def test_no_task_starts_after_the_end_of_an_epoch_and_all_start_in_the_next() -> None:
    tasks = ScheduledTasks()
    tasks.scheduler.set_tasks("a", FLOW, (0,))
    tasks.begin()
    tasks.poll()
    [(where, start)] = tasks.started
    assert tasks.scheduler.end_epoch() == [slot(0), slot(1)]
    tasks.end(where, start)
    assert tasks.poll() == []
    assert tasks.scheduler.begin_epoch(1) == [slot(0), slot(1)], "slots that have not ended"
    tasks.scheduler.add_slot(slot(0, attempt=1), tasks.now)
    assert tasks.poll() == [(0, "a", 0)]
    assert tasks.started[0][1].retry == 0


def test_a_forgotten_job_is_not_drained_and_not_started_again() -> None:
    tasks = ScheduledTasks()
    tasks.scheduler.set_tasks("a", FLOW, (0,))
    tasks.begin()
    tasks.poll()
    tasks.scheduler.forget("a")
    assert tasks.poll() == []
    assert tasks.drained == []


def kept_tasks() -> ScheduledTasks:
    """Two tasks in two slots, which are kept after their epoch."""
    tasks = ScheduledTasks()
    tasks.scheduler.set_tasks("a", FLOW, (0, 1))
    tasks.begin()
    tasks.poll()
    tasks.scheduler.end_epoch()
    tasks.scheduler.keep_slots(tasks.now)
    return tasks


def later(where: SlotHello) -> SlotHello:
    """The hello with which a Spark task of the next epoch adopts a slot."""
    return replace(where, epoch=where.epoch + 1, attempt=where.attempt + 100)


def test_tasks_stay_in_slots_that_spark_tasks_of_the_next_epoch_adopt() -> None:
    tasks = kept_tasks()
    assert all(tasks.scheduler.copies_on(TaskKey("a", task), task + 1, 1) for task in (0, 1))
    assert tasks.scheduler.begin_epoch(2) == []
    for number in (0, 1):
        tasks.scheduler.adopt_slot(slot(number), later(slot(number)), tasks.now)
        assert tasks.poll() == []
    assert (tasks.released, tasks.drained, tasks.scheduler.connected) == ([], [], 2)


def test_a_slot_is_released_when_all_slots_of_the_epoch_are_connected_without_it() -> None:
    tasks = kept_tasks()
    tasks.scheduler.begin_epoch(2)
    tasks.scheduler.adopt_slot(slot(0), later(slot(0)), tasks.now)
    assert tasks.poll() == []
    assert tasks.released == [], "the other Spark task may still come"
    other = replace(later(slot(1)), pid=2)
    tasks.scheduler.add_slot(other, tasks.now)
    assert tasks.poll() == [], "its task runs until it is drained"
    assert (tasks.released, tasks.drained) == ([slot(1)], [("a", 1)])
    assert not tasks.scheduler.is_kept(slot(1))
    ended = TaskEnded(job="a", task=1, attempt=2, error="")
    tasks.scheduler.on_task_ended(slot(1), ended, tasks.now)
    assert tasks.poll() == [(1, "a", 1)]


def test_a_slot_that_no_spark_task_adopts_is_released_in_time() -> None:
    tasks = kept_tasks()
    tasks.poll(KEPT_SLOT_TIMEOUT_S - 1)
    assert tasks.released == []
    tasks.poll(1)
    assert tasks.released == [slot(0), slot(1)]
    assert tasks.drained == [("a", 0), ("a", 1)]
    tasks.poll(1)
    assert len(tasks.released) == 2, "once"


def test_an_attempt_that_copies_on_is_the_first_of_its_task_in_the_epoch() -> None:
    tasks = kept_tasks()
    tasks.scheduler.begin_epoch(1)
    tasks.scheduler.adopt_slot(slot(0), later(slot(0)), tasks.now)
    tasks.scheduler.remove_slot(slot(1))
    assert tasks.poll() == [(0, "a", 1)], "its slot is lost"
    assert [start.retry for _, start in tasks.started] == [1]


def test_tasks_of_released_slots_are_not_started_again_before_they_have_ended() -> None:
    tasks = kept_tasks()
    tasks.poll(KEPT_SLOT_TIMEOUT_S)
    tasks.scheduler.begin_epoch(1)
    tasks.scheduler.add_slot(replace(later(slot(0)), pid=2), tasks.now)
    assert tasks.poll() == []
    tasks.scheduler.remove_slot(slot(1))
    assert tasks.poll() == [(0, "a", 1)]

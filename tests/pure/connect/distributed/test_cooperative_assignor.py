"""How connectors and tasks are divided among workers."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.connect.connector_task_id import ConnectorTaskId
from sparkmirror.connect.distributed.cooperative_assignor import (
    AssignorMemory,
    AssignorResult,
    IncrementalCooperativeAssignor,
)
from sparkmirror.connect.distributed.worker_state import ConfiguredWork, WorkerState

FIVE_MINUTES_MS = 300_000


@dataclass
class Group:
    """Workers that run what the assignor gives them, and the leader's memory."""

    task_counts: dict[str, int]
    delay_ms: int = 0
    undivided: frozenset[str] = frozenset()
    workers: dict[str, WorkerState] = field(default_factory=dict)
    memory: AssignorMemory = field(default_factory=AssignorMemory)
    now_ms: int = 0
    moves: int = 0
    """How many connectors and tasks were revoked so far."""

    def join(self, worker_id: str) -> None:
        self.workers[worker_id] = WorkerState(
            worker_id=worker_id, url=f"http://{worker_id}/", config_offset=0
        )

    def lose(self, worker_id: str) -> None:
        del self.workers[worker_id]

    def rebalance_once(self) -> AssignorResult:
        result = IncrementalCooperativeAssignor(self.delay_ms).assign(
            {f"member-{one}": state for one, state in self.workers.items()},
            ConfiguredWork(task_counts=self.task_counts, undivided=self.undivided),
            self.memory,
            self.now_ms,
        )
        self.memory = result.memory
        for worker_id, state in self.workers.items():
            share = result.shares[f"member-{worker_id}"]
            assert not share.connectors & result.revoked_connectors[f"member-{worker_id}"]
            assert not share.tasks & result.revoked_tasks[f"member-{worker_id}"]
            revoked = (
                *result.revoked_connectors[f"member-{worker_id}"],
                *result.revoked_tasks[f"member-{worker_id}"],
            )
            self.moves += len(revoked)
            assert set(revoked) <= state.connectors | state.tasks, "only what runs is revoked"
            self.workers[worker_id] = WorkerState(
                worker_id=worker_id,
                url=state.url,
                config_offset=0,
                connectors=share.connectors,
                tasks=share.tasks,
            )
        self.assert_no_work_twice()
        return result

    def rebalance(self) -> AssignorResult:
        """Repeat rounds until no member must stop anything."""
        for _ in range(4):
            result = self.rebalance_once()
            if not result.has_revocations:
                return result
        raise AssertionError("the group does not settle")

    def assert_no_work_twice(self) -> None:
        for kind in ("connectors", "tasks"):
            running = [work for one in self.workers.values() for work in getattr(one, kind)]
            assert len(running) == len(set(running))

    def assert_all_runs(self) -> None:
        running = {work for one in self.workers.values() for work in (*one.connectors, *one.tasks)}
        configured = ConfiguredWork(task_counts=self.task_counts)
        assert running == set(self.task_counts) | configured.tasks()

    def assert_balanced(self) -> None:
        for kind in ("connectors", "tasks"):
            counts = [len(getattr(one, kind)) for one in self.workers.values()]
            assert max(counts) - min(counts) <= 1, (kind, counts)

    def tasks_of(self, worker_id: str) -> set[str]:
        return set(map(str, self.workers[worker_id].tasks))


def group(task_counts: dict[str, int], *workers: str, delay_ms: int = 0) -> Group:
    made = Group(task_counts=task_counts, delay_ms=delay_ms)
    for worker in workers:
        made.join(worker)
    return made


def test_a_lone_worker_runs_everything_in_one_round() -> None:
    one = group({"source": 2, "heartbeat": 1}, "w1")
    assert not one.rebalance_once().has_revocations
    one.assert_all_runs()


def test_two_workers_share_the_tasks_of_one_connector() -> None:
    one = group({"source": 2}, "w1", "w2")
    one.rebalance_once()
    assert (one.tasks_of("w1"), one.tasks_of("w2")) == ({"source-0"}, {"source-1"})
    assert one.workers["w1"].connectors == {"source"}


def test_a_second_worker_gets_one_task_of_each_connector_rather_than_all_of_one() -> None:
    one = group({"checkpoint": 1, "heartbeat": 1, "source": 2}, "w1")
    one.rebalance()
    one.join("w2")
    one.rebalance()
    one.assert_balanced()
    assert len({task for task in one.tasks_of("w2") if "source" in task}) == 1
    assert len({task for task in one.tasks_of("w1") if "source" in task}) == 1


def test_a_moved_task_is_revoked_in_one_round_and_assigned_in_the_next() -> None:
    one = group({"source": 2}, "w1")
    one.rebalance()
    one.join("w2")
    first = one.rebalance_once()
    assert set(map(str, first.revoked_tasks["member-w1"])) == {"source-1"}
    assert one.tasks_of("w2") == set()
    second = one.rebalance_once()
    assert not second.has_revocations
    assert one.tasks_of("w2") == {"source-1"}


def test_without_a_delay_the_work_of_a_lost_worker_is_assigned_at_once() -> None:
    one = group({"source": 4}, "w1", "w2")
    one.rebalance()
    one.lose("w2")
    result = one.rebalance_once()
    assert (result.has_revocations, result.delay_ms) == (False, 0)
    one.assert_all_runs()


def test_with_a_delay_the_work_of_a_lost_worker_is_held_for_it() -> None:
    one = group({"source": 4}, "w1", "w2", delay_ms=FIVE_MINUTES_MS)
    one.rebalance()
    before = one.tasks_of("w2")
    one.lose("w2")
    assert one.rebalance().delay_ms == FIVE_MINUTES_MS
    one.now_ms = 100_000
    assert one.rebalance().delay_ms == FIVE_MINUTES_MS - 100_000
    one.join("w2")
    assert one.rebalance().delay_ms == 0
    assert one.tasks_of("w2") == before
    assert one.moves == 0


def test_after_the_delay_other_workers_run_the_work_of_the_lost_one() -> None:
    one = group({"source": 4}, "w1", "w2", delay_ms=FIVE_MINUTES_MS)
    one.rebalance()
    one.lose("w2")
    one.rebalance()
    one.now_ms = FIVE_MINUTES_MS
    assert one.rebalance().delay_ms == 0
    one.assert_all_runs()


def test_during_the_delay_new_connectors_start_and_nothing_moves() -> None:
    one = group({"source": 4}, "w1", "w2", delay_ms=FIVE_MINUTES_MS)
    one.rebalance()
    one.lose("w2")
    one.rebalance()
    one.task_counts["other"] = 1
    one.join("w3")
    one.rebalance()
    assert "other-0" in one.tasks_of("w1") | one.tasks_of("w3")
    assert one.moves == 0


def test_a_worker_that_restarted_between_two_rounds_gets_its_share_back() -> None:
    one = group({"source": 6, "heartbeat": 1}, "w1", "w2", "w3")
    one.rebalance()
    before = {worker: one.tasks_of(worker) for worker in one.workers}
    one.lose("w2")
    one.join("w2")
    one.rebalance()
    assert {worker: one.tasks_of(worker) for worker in one.workers} == before
    assert one.moves == 0


def test_a_returning_worker_gets_a_fair_part_although_others_took_over() -> None:
    one = group({"source": 6}, "w1", "w2", "w3")
    one.rebalance()
    one.lose("w3")
    one.rebalance()
    one.join("w3")
    one.rebalance()
    one.assert_all_runs()
    one.assert_balanced()
    assert one.moves == 2


def test_what_was_deleted_is_revoked() -> None:
    one = group({"source": 2, "heartbeat": 1}, "w1")
    one.rebalance()
    del one.task_counts["heartbeat"]
    result = one.rebalance_once()
    assert result.revoked_connectors["member-w1"] == {"heartbeat"}
    assert set(map(str, result.revoked_tasks["member-w1"])) == {"heartbeat-0"}
    one.assert_all_runs()


def test_what_two_members_run_is_stopped_by_both_before_one_gets_it() -> None:
    one = group({"source": 1}, "w1", "w2")
    task = ConnectorTaskId(connector="source", task=0)
    for worker in ("w1", "w2"):
        one.workers[worker] = WorkerState(
            worker_id=worker,
            url="",
            config_offset=0,
            connectors=frozenset({"source"}),
            tasks=frozenset({task}),
        )
    result = one.rebalance_once()
    assert all(revoked == {task} for revoked in result.revoked_tasks.values())
    one.rebalance()
    one.assert_all_runs()


def test_the_tasks_of_an_undivided_connector_run_where_the_connector_runs() -> None:
    one = group({"a": 4, "b": 4, "heartbeat": 1}, "w1")
    one.undivided = frozenset({"a", "b"})
    one.rebalance()
    one.join("w2")
    one.rebalance()
    one.assert_all_runs()
    for state in one.workers.values():
        assert {task.connector for task in state.tasks} - {"heartbeat"} == (
            state.connectors - {"heartbeat"}
        )


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_group_that_has_settled_runs_everything_once_and_in_equal_parts(
    data: st.DataObject,
) -> None:
    names = ["a", "b", "c", "d"]
    one = group(data.draw(st.dictionaries(st.sampled_from(names), st.integers(0, 7))), "w0")
    is_divided = data.draw(st.booleans())
    if not is_divided:
        one.undivided = frozenset({"a", "c"})
    for step in range(data.draw(st.integers(1, 8))):
        match data.draw(st.sampled_from(["join", "lose", "restart", "configure", "round"])):
            case "join":
                one.join(f"w{step + 1}")
            case "lose" if len(one.workers) > 1:
                one.lose(data.draw(st.sampled_from(sorted(one.workers))))
            case "restart":
                one.join(data.draw(st.sampled_from(sorted(one.workers))))
            case "configure":
                one.task_counts[data.draw(st.sampled_from(names))] = data.draw(st.integers(0, 7))
            case _:
                one.rebalance_once()
    one.rebalance()
    one.assert_all_runs()
    if is_divided:
        one.assert_balanced()
    before, one.moves = dict(one.workers), 0
    one.rebalance()
    assert (one.workers, one.moves) == (before, 0), "a settled group stays as it is"


@given(st.integers(1, 6), st.integers(0, 40))
def test_a_joining_worker_moves_no_more_than_its_part(workers: int, tasks: int) -> None:
    one = group({"source": tasks}, *(f"w{number}" for number in range(workers)))
    one.rebalance()
    one.join("w-new")
    one.rebalance()
    part = -(-tasks // (workers + 1))
    assert one.moves <= part + 1

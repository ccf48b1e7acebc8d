"""Tasks as threads: what the herder hears of them, whatever becomes of their work."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sparkmirror.connect.connectors.shared.thread_tasks import ThreadTaskGroup
from sparkmirror.connect.task_group import TaskPlan
from sparkmirror.errors import ClusterUnavailable
from tests.support.connect.connector_context import RecordingListener
from tests.support.waiting import wait_until


class CountingTask:
    """Work that counts its turns, and does in each what the test wants."""

    def __init__(self, config: Mapping[str, str], each: Callable[[int], None]) -> None:
        self.config = config
        self.turns = 0
        self.ended = False
        self._each = each

    def start(self) -> None:
        pass

    def run_due(self) -> None:
        self.turns += 1
        self._each(self.turns)

    def next_run_in_s(self) -> float:
        return 0.01

    def current_problem(self) -> str:
        return self.config.get("remark", "")

    def written_topics(self) -> frozenset[str]:
        return frozenset({"topic"})

    def reconfigure(self, config: Mapping[str, str]) -> bool:
        if config.get("anew"):
            return False
        self.config = config
        return True

    def close(self) -> None:
        self.ended = True


class Bench:
    """A group whose works the test can look at."""

    def __init__(self, each: Callable[[int], None] = lambda _: None) -> None:
        self.works: list[CountingTask] = []
        self.listener = RecordingListener()
        self._each = each
        self.group = ThreadTaskGroup("c", self.listener, self._make)

    def _make(self, config: Mapping[str, str]) -> CountingTask:
        if config.get("fails"):
            raise ValueError("no work like that")
        self.works.append(CountingTask(config, self._each))
        return self.works[-1]

    def wait(self, word: str, task: int = 0) -> None:
        wait_until(
            lambda: self.listener.last_report(task) == word, f"{word}, not {self.listener.reports}"
        )


def _plan(*tasks: Mapping[str, str]) -> TaskPlan:
    return TaskPlan(connector="c", config={}, tasks=tasks, generation=1)


def test_a_task_runs_pauses_goes_on_and_stops() -> None:
    bench = Bench()
    bench.group.start(_plan({}), paused=False)
    bench.wait("running")
    bench.group.pause()
    bench.wait("paused")
    turns = bench.works[0].turns
    bench.group.resume()
    bench.wait("running")
    assert bench.works[0].turns > turns
    wait_until(lambda: bench.listener.topics == {"topic"}, "its topics to be told")
    bench.group.stop(50)
    assert bench.listener.last_report() == "stopped"
    assert bench.works[0].ended


def test_a_task_that_starts_paused_does_nothing() -> None:
    bench = Bench()
    bench.group.start(_plan({}), paused=True)
    bench.wait("paused")
    assert bench.works[0].turns == 0
    bench.group.stop(50)


def test_a_cluster_in_trouble_is_a_remark_until_it_is_well() -> None:
    def each(turn: int) -> None:
        if turn == 1:
            raise ClusterUnavailable("B", "nobody there")

    bench = Bench(each)
    bench.group.start(_plan({}), paused=False)
    bench.wait("running")
    assert bench.listener.reports[0] == ["running: B: nobody there", "running"]
    bench.group.stop(50)


def test_any_other_error_fails_the_task_and_no_other() -> None:
    bench = Bench()
    bench.group.start(_plan({"fails": "yes"}, {}), paused=False)
    bench.wait("failed", 0)
    bench.wait("running", 1)
    assert str(bench.listener.failures[0]) == "no work like that"
    bench.group.restart({0: {}})
    bench.wait("running", 0)
    bench.group.stop(50)


def test_reassigning_interrupts_only_what_must_begin_anew() -> None:
    bench = Bench()
    bench.group.start(_plan({"n": "0"}, {"n": "1"}, {"n": "2"}), paused=False)
    for task in range(3):
        bench.wait("running", task)
    works = {work.config["n"]: work for work in bench.works}
    bench.group.reassign(_plan({"n": "0", "remark": "hm"}, {"n": "1", "anew": "yes"}))
    bench.wait("running: hm", 0)
    bench.wait("stopped", 2)
    wait_until(lambda: works["1"].ended, "the old work to end")
    wait_until(lambda: bench.listener.reports[1].count("running") == 2, "it to run again")
    assert not works["0"].ended
    assert len(bench.works) == 4
    bench.group.stop(50)
    assert all(work.ended for work in bench.works)

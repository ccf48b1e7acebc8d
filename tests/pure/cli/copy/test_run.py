"""How a copy is followed, and why it ends."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from sparkmirror.cli.copy.completion import CompletionCheck
from sparkmirror.cli.copy.progress import ProgressTracker
from sparkmirror.cli.copy.ranges import PartitionRange
from sparkmirror.cli.copy.run import CopyRun, CopyRunResult, Engine, StopReason
from sparkmirror.copy.snapshot import CopyEvent, CopySnapshot, PartitionView
from sparkmirror.engine.supervisor.driver_status import DriverPhase, DriverStatus
from sparkmirror.errors import DriverLost
from sparkmirror.model import TopicPartition
from tests.support.cli.scripted_engine import RecordingScreen, ScriptedEngine

LOSS = CopyEvent(at_ms=0, kind="retention", partition="a-0", text="gone")
STARTING = DriverStatus(phase=DriverPhase.STARTING)


def _at(position: int, phase: DriverPhase = DriverPhase.RUNNING, **more: object) -> DriverStatus:
    view = PartitionView(remote="a", task=0, state="leased", position=position, records=position)
    held = replace(view, state="held", reason="gone", halted=True)
    events = (LOSS,) if more.get("halted") else ()
    return DriverStatus(
        phase=phase,
        application_id=str(more.get("run", "one")),
        problem=str(more.get("trouble", "")),
        snapshot=CopySnapshot(partitions={"a-0": held if events else view}, events=events),
    )


def _follow(
    engine: Engine, screen: RecordingScreen, is_interrupted: Callable[[], bool] = lambda: False
) -> CopyRunResult:
    legs = {TopicPartition("a", 0): PartitionRange(start_offset=0, end_offset=10)}
    clock = itertools.count()
    return CopyRun(
        engine=engine,
        completion=CompletionCheck({"a-0": 10}),
        tracker=ProgressTracker(legs, {"a": "a"}, has_end=True, started_at=0.0),
        screen=screen,
        is_interrupted=is_interrupted,
        clock=lambda: float(next(clock)),
    ).run()


def test_a_copy_that_has_caught_up_is_drained_and_told_as_it_stood_at_the_end() -> None:
    stopped = [_at(11, DriverPhase.DRAINING), _at(12, DriverPhase.STOPPED)]
    engine = ScriptedEngine([STARTING, _at(4), _at(10), _at(99)], stopped)
    ending = _follow(engine, screen := RecordingScreen())
    assert ending.reason is StopReason.CAUGHT_UP
    assert ending.progress.topics[0].records == 12
    assert engine.calls == ["start", "drain", "stop"]
    assert [status.phase for status, _ in screen.shown] == [
        *(
            DriverPhase.STARTING,
            DriverPhase.RUNNING,
            DriverPhase.RUNNING,
            DriverPhase.DRAINING,
            DriverPhase.STOPPED,
        ),
    ]


def test_an_interrupted_copy_is_drained() -> None:
    asked: list[bool] = []
    engine = ScriptedEngine([_at(1), lambda: asked.append(True), _at(2), _at(3)])
    ending = _follow(engine, screen := RecordingScreen(), lambda: bool(asked))
    assert ending.reason is StopReason.INTERRUPTED
    assert screen.messages == ["Finishing batches in flight; Ctrl-C again ends at once."]
    assert engine.calls == ["start", "drain", "stop"]


def test_an_interruption_counts_even_before_spark_is_there() -> None:
    engine = ScriptedEngine([STARTING, STARTING])
    assert _follow(engine, RecordingScreen(), lambda: True).reason is StopReason.INTERRUPTED
    assert engine.calls == ["start", "drain", "stop"]


def test_a_stuck_copy_is_drained() -> None:
    engine = ScriptedEngine([_at(3, halted=True)])
    assert _follow(engine, RecordingScreen()).reason is StopReason.STUCK
    assert engine.calls == ["start", "drain", "stop"]


def test_an_event_is_told_once_however_often_it_is_reported() -> None:
    told = replace(_at(3), snapshot=replace(_at(3).snapshot, events=(LOSS,)))
    ending = _follow(ScriptedEngine([told, told, told]), screen := RecordingScreen())
    assert screen.events == [LOSS]
    assert ending.events == (LOSS,)


def test_a_failed_engine_is_told_with_its_trouble() -> None:
    engine = ScriptedEngine([_at(3), _at(3, DriverPhase.FAILED, trouble="no Java")])
    ending = _follow(engine, screen := RecordingScreen())
    assert (ending.reason, ending.status.problem) == (StopReason.FAILED, "no Java")
    assert screen.messages == []
    assert engine.calls == ["start", "stop"]


def test_a_failure_that_another_driver_may_heal_is_told_once() -> None:
    failed = _at(3, DriverPhase.FAILED, trouble="Spark ran out of memory")
    lost = _at(3, DriverPhase.RESTARTING, trouble="Spark ran out of memory")
    engine = ScriptedEngine([_at(3), failed, lost, STARTING, _at(10)])
    assert _follow(engine, screen := RecordingScreen()).reason is StopReason.CAUGHT_UP
    assert screen.messages == ["Spark ran out of memory"]


def test_an_engine_that_ends_without_a_word_has_failed() -> None:
    assert _follow(ScriptedEngine([]), RecordingScreen()).reason is StopReason.FAILED


def test_an_interrupted_copy_that_got_there_all_the_same_has_caught_up() -> None:
    engine = ScriptedEngine([_at(9)], [_at(10, DriverPhase.STOPPED)])
    assert _follow(engine, RecordingScreen(), lambda: True).reason is StopReason.CAUGHT_UP


def test_a_copy_that_fails_while_it_drains_has_still_caught_up() -> None:
    engine = ScriptedEngine([_at(10)], [_at(10, DriverPhase.FAILED, trouble="late")])
    assert _follow(engine, RecordingScreen()).reason is StopReason.CAUGHT_UP


def test_what_an_earlier_driver_copied_is_not_forgotten_while_the_next_one_starts() -> None:
    restarting = DriverStatus(phase=DriverPhase.RESTARTING, problem="Spark went away")
    script = [_at(5), restarting, STARTING, _at(7, run="two"), _at(10, run="two")]
    ending = _follow(
        ScriptedEngine(script, [_at(10, DriverPhase.STOPPED, run="two")]),
        screen := RecordingScreen(),
    )
    assert [progress.topics[0].position for _, progress in screen.shown][:3] == [5, 5, 5]
    assert ending.progress.records == 10
    assert screen.messages == ["Spark went away"]


def test_an_engine_that_gets_going_again_may_be_lost_any_number_of_times() -> None:
    lost = DriverStatus(phase=DriverPhase.RESTARTING, problem="Spark went away")
    engine = ScriptedEngine([*[lost, STARTING, _at(1)] * 9, _at(10)])
    assert _follow(engine, RecordingScreen()).reason is StopReason.CAUGHT_UP


def test_a_drain_that_does_not_end_is_given_up() -> None:
    engine = ScriptedEngine([_at(10)], [_at(10, DriverPhase.DRAINING)] * 200)
    ending = _follow(engine, screen := RecordingScreen())
    assert ending.reason is StopReason.CAUGHT_UP
    assert len(screen.shown) < 100
    assert screen.messages == ["Draining took too long; the next run checks the target."]


def test_nothing_is_left_running_when_something_breaks() -> None:
    class Broken(ScriptedEngine):
        def statuses(self) -> Iterator[DriverStatus]:
            raise DriverLost("gone")

    engine = Broken([])
    with pytest.raises(DriverLost):
        _follow(engine, RecordingScreen())
    assert engine.calls == ["start", "stop"]

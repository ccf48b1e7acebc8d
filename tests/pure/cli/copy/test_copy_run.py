"""`CopyRun` watches an engine and returns why the copy ended."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from sparkmirror.cli.copy.completion import CompletionCheck
from sparkmirror.cli.copy.copy_run import CopyRun, CopyRunResult, Engine, StopReason
from sparkmirror.cli.copy.progress_tracker import ProgressTracker
from sparkmirror.cli.copy.ranges import PartitionRange
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
        problem=str(more.get("problem", "")),
        snapshot=CopySnapshot(partitions={"a-0": held if events else view}, events=events),
    )


def _run_copy(
    engine: Engine, screen: RecordingScreen, is_interrupted: Callable[[], bool] = lambda: False
) -> CopyRunResult:
    ranges = {TopicPartition("a", 0): PartitionRange(start_offset=0, end_offset=10)}
    clock = itertools.count()
    return CopyRun(
        engine=engine,
        completion=CompletionCheck({"a-0": 10}),
        tracker=ProgressTracker(ranges, {"a": "a"}, has_end=True, started_at=0.0),
        screen=screen,
        is_interrupted=is_interrupted,
        clock=lambda: float(next(clock)),
    ).run()


def test_copy_that_has_caught_up_is_drained_and_returns_its_last_status() -> None:
    stopped = [_at(11, DriverPhase.DRAINING), _at(12, DriverPhase.STOPPED)]
    engine = ScriptedEngine([STARTING, _at(4), _at(10), _at(99)], stopped)
    result = _run_copy(engine, screen := RecordingScreen())
    assert result.reason is StopReason.CAUGHT_UP
    assert result.progress.topics[0].records == 12
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
    interruptions: list[bool] = []
    engine = ScriptedEngine([_at(1), lambda: interruptions.append(True), _at(2), _at(3)])
    result = _run_copy(engine, screen := RecordingScreen(), lambda: bool(interruptions))
    assert result.reason is StopReason.INTERRUPTED
    assert screen.messages == ["Finishing batches in flight; Ctrl-C again ends at once."]
    assert engine.calls == ["start", "drain", "stop"]


def test_copy_interrupted_while_spark_starts_is_drained() -> None:
    engine = ScriptedEngine([STARTING, STARTING])
    assert _run_copy(engine, RecordingScreen(), lambda: True).reason is StopReason.INTERRUPTED
    assert engine.calls == ["start", "drain", "stop"]


def test_a_stuck_copy_is_drained() -> None:
    engine = ScriptedEngine([_at(3, halted=True)])
    assert _run_copy(engine, RecordingScreen()).reason is StopReason.STUCK
    assert engine.calls == ["start", "drain", "stop"]


def test_event_is_printed_once() -> None:
    reported = replace(_at(3), snapshot=replace(_at(3).snapshot, events=(LOSS,)))
    result = _run_copy(ScriptedEngine([reported, reported, reported]), screen := RecordingScreen())
    assert screen.events == [LOSS]
    assert result.events == (LOSS,)


def test_failed_engine_returns_its_problem() -> None:
    engine = ScriptedEngine([_at(3), _at(3, DriverPhase.FAILED, problem="no Java")])
    result = _run_copy(engine, screen := RecordingScreen())
    assert (result.reason, result.status.problem) == (StopReason.FAILED, "no Java")
    assert screen.messages == []
    assert engine.calls == ["start", "stop"]


def test_problem_of_a_restarted_driver_is_printed_once() -> None:
    failed = _at(3, DriverPhase.FAILED, problem="Spark ran out of memory")
    lost = _at(3, DriverPhase.RESTARTING, problem="Spark ran out of memory")
    engine = ScriptedEngine([_at(3), failed, lost, STARTING, _at(10)])
    assert _run_copy(engine, screen := RecordingScreen()).reason is StopReason.CAUGHT_UP
    assert screen.messages == ["Spark ran out of memory"]


def test_engine_that_ends_without_a_status_has_failed() -> None:
    assert _run_copy(ScriptedEngine([]), RecordingScreen()).reason is StopReason.FAILED


def test_interrupted_copy_that_reaches_its_end_offsets_has_caught_up() -> None:
    engine = ScriptedEngine([_at(9)], [_at(10, DriverPhase.STOPPED)])
    assert _run_copy(engine, RecordingScreen(), lambda: True).reason is StopReason.CAUGHT_UP


def test_copy_that_fails_while_it_drains_has_caught_up() -> None:
    engine = ScriptedEngine([_at(10)], [_at(10, DriverPhase.FAILED, problem="late")])
    assert _run_copy(engine, RecordingScreen()).reason is StopReason.CAUGHT_UP


def test_progress_is_kept_while_the_next_driver_starts() -> None:
    restarting = DriverStatus(phase=DriverPhase.RESTARTING, problem="Spark went away")
    script = [_at(5), restarting, STARTING, _at(7, run="two"), _at(10, run="two")]
    result = _run_copy(
        ScriptedEngine(script, [_at(10, DriverPhase.STOPPED, run="two")]),
        screen := RecordingScreen(),
    )
    assert [progress.topics[0].position for _, progress in screen.shown][:3] == [5, 5, 5]
    assert result.progress.records == 10
    assert screen.messages == ["Spark went away"]


def test_engine_may_restart_any_number_of_times() -> None:
    lost = DriverStatus(phase=DriverPhase.RESTARTING, problem="Spark went away")
    engine = ScriptedEngine([*[lost, STARTING, _at(1)] * 9, _at(10)])
    assert _run_copy(engine, RecordingScreen()).reason is StopReason.CAUGHT_UP


def test_drain_ends_after_its_timeout() -> None:
    engine = ScriptedEngine([_at(10)], [_at(10, DriverPhase.DRAINING)] * 200)
    result = _run_copy(engine, screen := RecordingScreen())
    assert result.reason is StopReason.CAUGHT_UP
    assert len(screen.shown) < 100
    assert screen.messages == ["Draining took too long; the next run checks the target."]


def test_engine_is_stopped_after_an_exception() -> None:
    class Broken(ScriptedEngine):
        def statuses(self) -> Iterator[DriverStatus]:
            raise DriverLost("gone")

    engine = Broken([])
    with pytest.raises(DriverLost):
        _run_copy(engine, RecordingScreen())
    assert engine.calls == ["start", "stop"]

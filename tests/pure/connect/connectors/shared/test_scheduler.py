"""Jobs at intervals: in order, also after an error."""

from __future__ import annotations

import pytest

from sparkmirror.connect.connectors.shared.scheduler import Scheduler
from sparkmirror.errors import ClusterUnavailable
from tests.support.waiting import wait_until


def test_jobs_run_in_turn_and_a_failing_job_runs_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    done: list[str] = []
    scheduler = Scheduler("Scheduler for tests", connector="c")

    def fail() -> None:
        done.append("fail")
        raise ClusterUnavailable("A", "connection refused")

    scheduler.schedule_repeating(0, "failing", fail)
    scheduler.schedule_repeating(0, "counting", lambda: done.append("count"))
    scheduler.schedule_repeating(0, "coming first", lambda: done.append("first"), first=True)
    scheduler.schedule_repeating(None, "never", lambda: done.append("never"))
    scheduler.start()
    wait_until(lambda: done.count("count") >= 3, "three rounds")
    assert scheduler.stop(50)
    assert done[:6] == ["first", "fail", "count"] * 2
    assert "caught exception in scheduled task: failing: A: connection refused" in caplog.text


def test_stop_does_not_wait_for_a_long_interval() -> None:
    done: list[str] = []
    scheduler = Scheduler("Scheduler for tests", connector="c")
    scheduler.schedule_repeating(3600, "once", lambda: done.append("once"))
    scheduler.start()
    wait_until(lambda: done == ["once"], "the first run")
    assert scheduler.stop(50)
    assert done == ["once"]

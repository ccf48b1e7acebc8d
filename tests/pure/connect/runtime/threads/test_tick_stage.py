"""The summary of what the herder thread is doing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count

from sparkmirror.connect.runtime.threads.tick_stage import TickThreadStage

BEGAN = datetime(2026, 11, 15, 22, 40, 26, 320999, tzinfo=UTC)


def tick_stage_with_clock() -> TickThreadStage:
    seconds = count()
    return TickThreadStage(lambda: BEGAN + timedelta(seconds=next(seconds)))


def test_the_summary_uses_connects_sentences() -> None:
    tick_stage = tick_stage_with_clock()
    assert tick_stage.summary() == ""
    with tick_stage.enter("flushing updates to the status topic"):
        assert tick_stage.summary() == (
            "The worker is currently flushing updates to the status topic, which began at "
            "2026-11-15T22:40:26.320Z."
        )
    assert tick_stage.summary() == (
        "The last operation the worker completed was flushing updates to the status topic, which "
        "began at 2026-11-15T22:40:26.320Z and completed at 2026-11-15T22:40:27.320Z."
    )


def test_an_inner_stage_hides_the_outer_until_it_ends() -> None:
    tick_stage = tick_stage_with_clock()
    with tick_stage.enter("starting"):
        with tick_stage.enter("reading"):
            assert "currently reading" in tick_stage.summary()
        assert "currently starting" in tick_stage.summary()
    assert "completed was starting" in tick_stage.summary()

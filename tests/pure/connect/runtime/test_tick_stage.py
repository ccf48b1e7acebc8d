"""What a worker says it is doing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count

from sparkmirror.connect.runtime.tick_stage import TickThreadStage

BEGAN = datetime(2026, 11, 15, 22, 40, 26, 320999, tzinfo=UTC)


def stages() -> TickThreadStage:
    seconds = count()
    return TickThreadStage(lambda: BEGAN + timedelta(seconds=next(seconds)))


def test_a_stage_is_told_in_connects_words() -> None:
    now = stages()
    assert now.summary() == ""
    with now.enter("flushing updates to the status topic"):
        assert now.summary() == (
            "The worker is currently flushing updates to the status topic, which began at "
            "2026-11-15T22:40:26.320Z."
        )
    assert now.summary() == (
        "The last operation the worker completed was flushing updates to the status topic, which "
        "began at 2026-11-15T22:40:26.320Z and completed at 2026-11-15T22:40:27.320Z."
    )


def test_an_inner_stage_hides_the_outer_until_it_is_over() -> None:
    now = stages()
    with now.enter("starting"):
        with now.enter("reading"):
            assert "currently reading" in now.summary()
        assert "currently starting" in now.summary()
    assert "completed was starting" in now.summary()

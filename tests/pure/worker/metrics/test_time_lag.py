"""The lag in seconds."""

from __future__ import annotations

from sparkmirror.copy.snapshot import PartitionView
from sparkmirror.worker.metrics.time_lag import TimeLags


def view(lag: int | None, newest_s: float = -0.001, position: int = 100) -> PartitionView:
    end = -1 if lag is None else position + lag
    return PartitionView(
        remote="A.t",
        task=0,
        state="leased",
        position=position,
        end=end,
        newest_ms=round(newest_s * 1000),
    )


def test_without_a_lag_it_is_zero_and_unknown_with_an_unknown_lag() -> None:
    lags = TimeLags()
    assert lags.seconds("t-0", view(0), 50.0) == 0
    assert lags.seconds("t-0", view(None), 50.0) is None
    assert lags.seconds("t-0", view(5), 50.0) is None


def test_a_backlog_is_as_old_as_the_newest_copied_record() -> None:
    lags = TimeLags()
    lags.on_view("t-0", None, view(9, newest_s=20.0), 0.0, 50.0)
    lags.on_view("t-0", view(9), view(9, 15.0, 101), 0.0, 50.0)
    assert lags.seconds("t-0", view(9), 50.0) == 30.0


def test_the_first_record_after_an_idle_time_has_not_waited_longer_than_the_lag_lasts() -> None:
    lags = TimeLags()
    lags.on_view("t-0", None, view(0, newest_s=20.0), 0.0, 21.0)
    lags.on_view("t-0", view(0), view(1, newest_s=20.0), 3600.0, 3601.0)
    assert lags.seconds("t-0", view(1), 3602.0) == 2.0


def test_a_clock_that_is_behind_gives_no_negative_lag() -> None:
    lags = TimeLags()
    lags.on_view("t-0", None, view(9, newest_s=60.0), 0.0, 50.0)
    assert lags.seconds("t-0", view(9), 50.0) == 0.0


def test_a_partition_that_left_the_plan_is_forgotten() -> None:
    lags = TimeLags()
    lags.on_view("t-0", None, view(9, newest_s=20.0), 0.0, 50.0)
    lags.keep(["t-1"])
    assert lags.seconds("t-0", view(9), 50.0) is None


def test_a_record_from_the_future_hides_no_lag() -> None:
    lags = TimeLags()
    lags.on_view("t-0", None, view(9, newest_s=10.0), 0.0, 20.0)
    lags.on_view("t-0", view(9), view(8, 9e9, position=101), 20.0, 21.0)
    lags.on_view("t-0", view(8, position=101), view(30, 9e9, position=101), 21.0, 400.0)
    assert lags.seconds("t-0", view(30, position=101), 421.0) == 400.0

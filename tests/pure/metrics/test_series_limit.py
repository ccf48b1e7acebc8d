"""No metric has more series than are allowed, and what is left out is counted."""

from __future__ import annotations

from sparkmirror.metrics.definition import Figure
from sparkmirror.metrics.process_metrics import PROCESS_FILES
from sparkmirror.metrics.series_limit import limit_series
from sparkmirror.metrics.sparkmirror_metrics import PROBLEMS
from tests.support.exposed_series import series, series_of

FIGURES = [
    Figure(definition=PROCESS_FILES, value=1),
    *(Figure(definition=PROBLEMS, value=0, labels={"connector": str(one)}) for one in range(5)),
]


def test_the_first_series_stay_and_the_others_are_counted() -> None:
    found = series_of(limit_series(FIGURES, 3))
    names = [name for name, _ in found]
    assert names.count("sparkmirror_problems") == 3
    assert series("sparkmirror_problems", connector="2") in found
    assert series("process_open_fds") in found
    assert found[series("sparkmirror_metrics_left_out_series")] == 2


def test_with_fewer_series_none_is_left_out() -> None:
    found = series_of(limit_series(FIGURES, 5))
    assert len(found) == 7
    assert found[series("sparkmirror_metrics_left_out_series")] == 0

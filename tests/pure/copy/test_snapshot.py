"""What a snapshot says of the lag: an unknown one is never 0."""

from __future__ import annotations

import pytest

from sparkmirror.copy.snapshot import PartitionView, total_lag


@pytest.mark.parametrize(
    ("position", "end", "lag"),
    [
        (4, 9, 5),
        (9, 9, 0),
        (0, 0, 0),
        (4, -1, None),
        (-1, 9, None),
        (-1, -1, None),
        (500, 10, None),  # the source topic was created again, or truncated
    ],
)
def test_lag_is_known_only_between_a_known_position_and_a_known_end(
    position: int, end: int, lag: int | None
) -> None:
    view = PartitionView(remote="A.t", task=0, state="leased", position=position, end=end)
    assert view.lag == lag


def test_sum_of_lags_is_unknown_if_one_of_them_is() -> None:
    assert total_lag([3, 4]) == 7
    assert total_lag([3, None, 4]) is None
    assert total_lag([]) == 0

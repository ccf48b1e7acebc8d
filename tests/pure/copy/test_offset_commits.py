"""The times of writing source offsets."""

from __future__ import annotations

import pytest

from sparkmirror.copy.offset_commits import OffsetCommits, OffsetCommitTimer


def test_writes_and_failures_are_counted_and_measured() -> None:
    times = iter((0.0, 0.25, 1.0, 1.05, 2.0))
    timer = OffsetCommitTimer(lambda: next(times))
    for _ in range(2):
        with timer.measure():
            pass
    with pytest.raises(OSError, match="full"), timer.measure():
        raise OSError("full")
    assert timer.commits == OffsetCommits(successes=2, failures=1, total_ms=300, max_ms=250)

"""When a snapshot may be shown again."""

from __future__ import annotations

import pytest

from sparkmirror.copy.control.messages import Hello
from sparkmirror.copy.driver.monitoring.snapshot_cache import SnapshotCache, SnapshotInputs
from sparkmirror.copy.snapshot import CopyEvent, CopySnapshot, PartitionView

HELLO = Hello(task=0, attempt=1, host="here", pid=1, epoch=1, retry=0, job="east")
NO_NEWS = SnapshotInputs(silent_attempts=set(), driver_error="", events=())
EVENT = CopyEvent(at_ms=1, kind="takeover", partition="t-0", text="taken over")


def snapshot(reason: str = "", state: str = "leased") -> CopySnapshot:
    view = PartitionView(remote="east.t", task=0, state=state, reason=reason)
    return CopySnapshot(partitions={"t-0": view})


def test_a_snapshot_without_news_is_the_same_object_again() -> None:
    cache, stored = SnapshotCache(), snapshot()
    assert cache.find(NO_NEWS) is None
    cache.store(NO_NEWS, stored)
    assert cache.find(NO_NEWS) is stored


@pytest.mark.parametrize(
    "inputs",
    [
        NO_NEWS._replace(silent_attempts={HELLO}),
        NO_NEWS._replace(driver_error="target: refused"),
        NO_NEWS._replace(events=(EVENT,)),
    ],
    ids=["silent-task", "error", "event"],
)
def test_other_inputs_need_another_snapshot(inputs: SnapshotInputs) -> None:
    cache = SnapshotCache()
    cache.store(NO_NEWS, snapshot())
    assert cache.find(inputs) is None


def test_a_changed_state_needs_another_snapshot() -> None:
    cache = SnapshotCache()
    cache.store(NO_NEWS, snapshot())
    cache.invalidate()
    assert cache.find(NO_NEWS) is None


def test_a_snapshot_whose_reason_may_end_with_time_is_not_kept() -> None:
    cache = SnapshotCache()
    cache.store(NO_NEWS, snapshot(reason="held for a moment"))
    assert cache.find(NO_NEWS) is None
    waiting = snapshot(reason="Spark has not started task 0 yet", state="waiting")
    cache.store(NO_NEWS, waiting)
    assert cache.find(NO_NEWS) is waiting

"""What a snapshot says of the lag, and while no task copies: an unknown lag is never 0."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from sparkmirror.copy.control.failure_counts import FailureCounts
from sparkmirror.copy.offset_commits import OffsetCommits
from sparkmirror.copy.record_ages import AgeSummary, RecordAges
from sparkmirror.copy.snapshot import (
    CopyEvent,
    CopySnapshot,
    PartitionView,
    starting_snapshot,
    total_lag,
)
from sparkmirror.model import TopicPartition
from tests.support.copy.scripted_clusters import copy_job


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


def test_before_the_first_status_every_partition_waits_with_a_reason_and_no_end() -> None:
    snapshot = starting_snapshot(copy_job((TopicPartition("t", 0),), (TopicPartition("t", 1),)))
    assert {
        key: (view.remote, view.task, view.state, view.end, view.reason)
        for key, view in snapshot.partitions.items()
    } == {
        "t-0": ("A.t", 0, "waiting", -1, "the Spark driver is starting"),
        "t-1": ("A.t", 1, "waiting", -1, "the Spark driver is starting"),
    }


def test_without_a_driver_no_end_is_known_and_positions_stay() -> None:
    copied = PartitionView(remote="A.t", task=0, state="leased", position=7, end=7, records=7)
    halted = PartitionView(
        remote="A.t", task=0, state="held", position=3, reason="decide", halted=True
    )
    snapshot = CopySnapshot(partitions={"t-0": copied, "t-1": halted})
    stalled = snapshot.while_stalled("the driver died").partitions
    assert (stalled["t-0"].state, stalled["t-0"].end) == ("waiting", -1)
    assert (stalled["t-0"].reason, stalled["t-0"].position) == ("the driver died", 7)
    assert stalled["t-1"] == halted


def test_partitions_that_wait_for_a_task_without_a_slot_have_that_reason() -> None:
    copied = PartitionView(remote="A.t", task=0, state="leased", position=7, end=7)
    waiting = PartitionView(remote="A.t", task=1, state="waiting", reason="Spark has not started")
    moving = PartitionView(remote="A.t", task=0, state="waiting", position=7, end=9)
    snapshot = CopySnapshot(partitions={"t-0": copied, "t-1": waiting, "t-2": moving})
    reason = "only 1 of 2 tasks have a slot in Spark"
    shown = snapshot.while_waiting_for_slots([1], reason).partitions
    assert shown == {"t-0": copied, "t-1": replace(waiting, reason=reason), "t-2": moving}


def events(*numbers: int) -> tuple[CopyEvent, ...]:
    return tuple(CopyEvent(at_ms=n, kind="takeover", partition="t-0", text="t") for n in numbers)


@pytest.mark.parametrize(
    ("before", "now", "sent"),
    [
        ((), (1, 2), 2),
        ((1, 2), (1, 2, 3), 1),
        ((1, 2, 3), (2, 3, 4, 5), 2),
        ((1, 2), (8, 9), 2),
        ((1, 2), (), 0),
        ((1, 2), (1,), 1),
    ],
)
def test_a_status_has_the_events_that_are_new(
    before: tuple[int, ...], now: tuple[int, ...], sent: int
) -> None:
    """Old ones fall out at the limit, and another conductor begins without any."""
    known = CopySnapshot(events=events(*before))
    snapshot = CopySnapshot(events=events(*now))
    value = json.loads(json.dumps(snapshot.to_json(known)))
    assert len(value["events"]) == sent
    assert CopySnapshot.from_json(value, known) == snapshot


def test_a_snapshot_survives_json() -> None:
    view = PartitionView(
        remote="A.t",
        task=0,
        state="leased",
        suppressed=3,
        active=2,
        newest_ms=7,
        failures=FailureCounts(1, 2, 3, 4),
        ages=RecordAges(AgeSummary(1, 2, 3, 4, 5), AgeSummary(1, 6, 7, 8, 9)),
    )
    snapshot = CopySnapshot(
        partitions={"t-0": view, "t-1": replace(view, ages=RecordAges())},
        lanes={"t": {"plain": 1}},
        events=events(1),
        lost_attempts=4,
        commits=OffsetCommits(1, 2, 3, 4),
    )
    assert CopySnapshot.from_json(json.loads(json.dumps(snapshot.to_json()))) == snapshot

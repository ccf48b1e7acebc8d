"""Connect's transaction settings: commit interval and timeout."""

from __future__ import annotations

import pytest

from sparkmirror.copy.delivery import (
    DEFAULT_COMMIT_INTERVAL_S,
    DeliveryMode,
    TransactionBoundary,
    commit_interval_for,
    transaction_timeout_for,
)
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.settings import CopySettings
from sparkmirror.errors import BadRequest


def test_boundary_poll_commits_at_the_default_interval() -> None:
    assert commit_interval_for(TransactionBoundary.POLL, 5000, 60_000) == DEFAULT_COMMIT_INTERVAL_S


def test_boundary_interval_uses_its_own_interval_or_the_flush_interval() -> None:
    assert commit_interval_for(TransactionBoundary.INTERVAL, 500, 60_000) == 0.5
    assert commit_interval_for(TransactionBoundary.INTERVAL, None, 60_000) == 60.0


def test_the_transaction_timeout_is_longer_than_two_commit_intervals() -> None:
    assert transaction_timeout_for(0.1, 30) == 30
    assert transaction_timeout_for(60, 30) == 130


def test_boundary_connector_is_refused() -> None:
    with pytest.raises(BadRequest, match="use poll or interval"):
        commit_interval_for(TransactionBoundary.CONNECTOR, None, 60_000)


@pytest.mark.parametrize("delivery", DeliveryMode, ids=str)
def test_the_delivery_mode_of_a_job_travels_as_json(delivery: DeliveryMode) -> None:
    job = CopyJob(
        connector="c",
        group_id="g",
        settings=CopySettings(),
        offsets_topic="offsets",
        remote_topics={},
        tasks={},
        task_count=0,
        delivery=delivery,
        previous_task_count=3,
    )
    assert CopyJob.from_json(job.to_json()) == job
    assert job.is_exactly_once == (delivery is DeliveryMode.EXACTLY_ONCE)

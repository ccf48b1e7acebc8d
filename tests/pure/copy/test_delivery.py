"""Connect's settings for transactions, and what they mean here."""

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


def test_a_poll_is_a_commit_as_often_as_it_pays() -> None:
    assert commit_interval_for(TransactionBoundary.POLL, 5000, 60_000) == DEFAULT_COMMIT_INTERVAL_S


def test_an_interval_is_its_own_or_that_of_the_workers_flushes() -> None:
    assert commit_interval_for(TransactionBoundary.INTERVAL, 500, 60_000) == 0.5
    assert commit_interval_for(TransactionBoundary.INTERVAL, None, 60_000) == 60.0


def test_a_transaction_may_take_longer_than_the_time_between_commits() -> None:
    assert transaction_timeout_for(0.1, 30) == 30
    assert transaction_timeout_for(60, 30) == 130


def test_a_mirror_has_no_boundaries_of_its_own() -> None:
    with pytest.raises(BadRequest, match="use poll or interval"):
        commit_interval_for(TransactionBoundary.CONNECTOR, None, 60_000)


@pytest.mark.parametrize("delivery", DeliveryMode, ids=str)
def test_a_job_says_how_it_delivers(delivery: DeliveryMode) -> None:
    job = CopyJob(
        connector="c",
        group_id="g",
        settings=CopySettings(),
        offsets_topic="offsets",
        remote_topics={},
        tasks=(),
        delivery=delivery,
        previous_task_count=3,
    )
    assert CopyJob.from_json(job.to_json()) == job
    assert job.is_exactly_once == (delivery is DeliveryMode.EXACTLY_ONCE)

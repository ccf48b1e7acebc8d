"""Connect's settings for transactions, and what they mean here."""

from __future__ import annotations

import pytest

from sparkmirror.copy.delivery import (
    COMMIT_EVERY_S,
    Boundary,
    Delivery,
    commit_every_s,
    timeout_for,
)
from sparkmirror.copy.job import Job
from sparkmirror.copy.settings import Settings
from sparkmirror.errors import BadRequest


def test_a_poll_is_a_commit_as_often_as_it_pays() -> None:
    assert commit_every_s(Boundary.POLL, 5000, 60_000) == COMMIT_EVERY_S


def test_an_interval_is_its_own_or_that_of_the_workers_flushes() -> None:
    assert commit_every_s(Boundary.INTERVAL, 500, 60_000) == 0.5
    assert commit_every_s(Boundary.INTERVAL, None, 60_000) == 60.0


def test_a_transaction_may_take_longer_than_the_time_between_commits() -> None:
    assert timeout_for(0.1, 30) == 30
    assert timeout_for(60, 30) == 130


def test_a_mirror_has_no_boundaries_of_its_own() -> None:
    with pytest.raises(BadRequest, match="use poll or interval"):
        commit_every_s(Boundary.CONNECTOR, None, 60_000)


@pytest.mark.parametrize("delivery", Delivery, ids=str)
def test_a_job_says_how_it_delivers(delivery: Delivery) -> None:
    job = Job(
        connector="c",
        group_id="g",
        settings=Settings(),
        offsets_topic="offsets",
        remote_topics={},
        tasks=(),
        delivery=delivery,
        tasks_before=3,
    )
    assert Job.from_json(job.to_json()) == job
    assert job.is_exactly_once == (delivery is Delivery.EXACTLY_ONCE)

"""A conductor that cannot work tries again after pauses that grow, and says so once."""

from __future__ import annotations

import logging

import pytest

from sparkmirror.copy.driver.conductor_retry import LAST_RETRY_S, ConductorRetry
from sparkmirror.errors import ClusterUnavailable, NotAuthorized
from sparkmirror.model import TopicPartition
from tests.support.copy.scripted_clusters import copy_job

JOB = copy_job((TopicPartition("t", 0),))
REFUSED = NotAuthorized("target", "offsets: write refused; grant Write")


def pauses_after_failures(problem: ConductorRetry, failures: int) -> list[float]:
    """The pauses in steps of 10 ms, of failures that follow each other without a success."""
    found: list[float] = []
    for _ in range(failures):
        problem.on_failure(REFUSED, 100.0)
        steps = (number / 100 for number in range(1000))
        found.append(next(pause for pause in steps if problem.is_due(100.0 + pause)))
    return found


def test_pauses_grow_up_to_a_limit_and_are_short_again_after_a_success() -> None:
    problem = ConductorRetry(JOB)
    assert problem.is_due(0.0)
    pauses = pauses_after_failures(problem, 8)
    assert pauses[0] <= 0.13
    assert pauses[3] > 0.5
    assert all(LAST_RETRY_S * 0.8 <= pause <= LAST_RETRY_S * 1.2 + 0.01 for pause in pauses[5:])
    problem.on_success()
    assert problem.is_due(100.0)
    assert pauses_after_failures(problem, 1)[0] <= 0.13


def test_the_log_tells_a_problem_and_its_end_once(caplog: pytest.LogCaptureFixture) -> None:
    problem = ConductorRetry(JOB)
    with caplog.at_level(logging.INFO, "sparkmirror.copy.driver.conductor_retry"):
        for _ in range(5):
            problem.on_failure(REFUSED, 0.0)
        problem.on_success()
        problem.on_success()
    text = "target: target: offsets: write refused; grant Write"
    assert caplog.messages == [
        f"Connector {JOB.connector}: {text}",
        f"Connector {JOB.connector}: the conductor continues after: {text}",
    ]


def test_a_call_that_is_tried_again_shows_until_it_has_failed_or_succeeded() -> None:
    problem = ConductorRetry(JOB)
    problem.on_retry(ClusterUnavailable("target", "a:1: connection refused"))
    assert problem.text == "target: target: a:1: connection refused"
    problem.on_failure(REFUSED, 0.0)
    assert problem.text.endswith("grant Write")
    problem.on_success()
    assert problem.text == ""

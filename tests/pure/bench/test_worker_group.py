"""What the bench reads from the statuses and the log of a worker."""

from __future__ import annotations

from typing import Any

import pytest

from bench.worker_group import RestRequest, config_read_s, is_running_on, request_figures
from sparkmirror.errors import LabError

LOG = """\
[2026-11-17 12:28:43,926] INFO [Worker clientId=c, groupId=g] Herder starting (herder:197)
[2026-11-17 12:28:44,534] INFO Read topic g-offsets to its end: 9 records (kafka_based_log:215)
[2026-11-17 12:28:45,426] INFO Read topic g-configs to its end: 402 records (kafka_based_log:215)
"""


def status(state: str, worker: str, *tasks: str) -> dict[str, Any]:
    return {
        "status": {
            "connector": {"state": state, "worker_id": worker},
            "tasks": [{"state": task, "worker_id": worker} for task in tasks],
        }
    }


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (status("RUNNING", "b:1", "RUNNING"), True),
        (status("RUNNING", "c:1", "RUNNING"), False),
        (status("RUNNING", "b:1", "UNASSIGNED"), False),
        (status("RUNNING", "b:1"), False),
    ],
    ids=["running", "on-another-worker", "unassigned", "without-tasks"],
)
def test_a_rebalance_has_ended_when_everything_runs_on_the_workers_that_are_left(
    second: dict[str, Any], expected: bool
) -> None:
    statuses = {"one": status("RUNNING", "a:1", "RUNNING"), "two": second}
    assert is_running_on(statuses, ["a:1", "b:1"], 2) is expected
    assert not is_running_on(statuses, ["a:1", "b:1"], 3)


def test_the_config_topic_is_read_from_the_start_of_the_herder_on() -> None:
    assert config_read_s(LOG) == 1.5


def test_a_log_without_the_config_topic_is_refused() -> None:
    with pytest.raises(LabError, match="config topic"):
        config_read_s(LOG.replace("g-configs", "g-others"))


def test_figures_of_requests() -> None:
    requests = [RestRequest(float(number), float(100 - number)) for number in range(1, 101)]
    assert request_figures(requests) == {
        "requests": 100.0,
        "rest_p50_ms": 51.0,
        "rest_p99_ms": 100.0,
        "rest_max_ms": 100.0,
        "wake_up_p99_ms": 99.0,
    }

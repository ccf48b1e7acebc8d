"""`status` shows each cause once, at the place that knows most."""

from __future__ import annotations

import pytest

from sparkmirror.cli.worker_problems import problem_lines, unexplained_text, unreachable_lines
from sparkmirror.cli.worker_rest_client import ConnectorSummary, HealthSummary, PartitionSummary

HEALTHY = HealthSummary(status="healthy", message="")
REFUSED = "source primary: PLAINTEXT 127.0.0.1:9092: connection refused; check the broker"
SOURCE = "A->B.MirrorSourceConnector"


def partition(number: int, reason: str = "") -> PartitionSummary:
    return PartitionSummary(
        topic="orders",
        partition=number,
        remote_topic="A.orders",
        state="leased",
        position=1,
        end=None,
        lag=None,
        records=1,
        bytes=1,
        reason=reason,
    )


def connector(name: str = SOURCE, *errors: str) -> ConnectorSummary:
    return ConnectorSummary(name=name, state="RUNNING", tasks=("RUNNING",), errors=errors)


def test_a_down_cluster_is_one_line_however_many_partitions_and_traces_name_it() -> None:
    partitions = [partition(number, REFUSED) for number in range(80)]
    traces = (
        f"orders-0 and 39 more partitions: {REFUSED}",
        f"orders-40 and 39 more partitions: {REFUSED}",
        REFUSED,
    )
    lines = problem_lines(HEALTHY, [connector(SOURCE, *traces)], {SOURCE: partitions})
    assert lines == [f"orders-0 and 79 more partitions: {REFUSED}"]


def test_connector_repeats_the_reason_of_its_partitions_without_the_side() -> None:
    partitions = {SOURCE: [partition(0, f"source: {REFUSED}")]}
    lines = problem_lines(HEALTHY, [connector(SOURCE, REFUSED)], partitions)
    assert lines == [f"orders-0: source: {REFUSED}"]


def test_connector_repeats_the_causes_of_both_sides_in_another_order() -> None:
    other = REFUSED.replace("primary", "backup")
    reason = f"target: {other}; source: {REFUSED}"
    traces = (f"{REFUSED}; {other}", f"orders-0: {reason}")
    lines = problem_lines(HEALTHY, [connector(SOURCE, *traces)], {SOURCE: [partition(0, reason)]})
    assert lines == [f"orders-0: {reason}"]


def test_one_cause_of_several_connectors_is_one_line() -> None:
    connectors = [connector("A->B.x", REFUSED), connector("A->B.y", REFUSED)]
    assert problem_lines(HEALTHY, connectors, {}) == [f"A->B.x and 1 more connector: {REFUSED}"]


@pytest.mark.parametrize(
    ("trace", "rest"),
    [
        (f"orders-0: {REFUSED}", ""),
        (f"only 2 of 4 tasks have a slot; orders-0: {REFUSED}", "only 2 of 4 tasks have a slot"),
        (f"orders-0: {REFUSED}; orders-1: too large; and 3 more causes", "orders-1: too large"),
        (REFUSED, ""),
        ("java.lang.Error: boom", "java.lang.Error: boom"),
        (f"{REFUSED} at noon", f"{REFUSED} at noon"),
    ],
)
def test_a_trace_is_shown_without_what_partitions_say(trace: str, rest: str) -> None:
    assert unexplained_text(trace, [REFUSED]) == rest


@pytest.mark.parametrize("health", ["starting", "unhealthy"])
def test_a_worker_that_is_not_healthy_comes_first(health: str) -> None:
    summary = HealthSummary(status=health, message="waiting for backup: connection refused")
    assert problem_lines(summary, [connector(SOURCE, "boom")], {}) == [
        f"the worker is {health}: waiting for backup: connection refused",
        f"{SOURCE}: boom",
    ]


def test_degraded_is_a_line_only_if_there_is_no_other_line() -> None:
    degraded = HealthSummary(status="degraded", message="1 connector has a problem")
    assert problem_lines(degraded, [connector(SOURCE, "boom")], {}) == [f"{SOURCE}: boom"]
    assert problem_lines(degraded, [connector()], {}) == [
        "the worker is degraded: 1 connector has a problem"
    ]


def test_a_problem_of_the_worker_itself_is_said_beside_those_of_connectors() -> None:
    message = "Worker is ready. But a second worker would not be noticed (and 1 more)"
    degraded = HealthSummary(status="degraded", message=message)
    assert problem_lines(degraded, [connector(SOURCE, "boom")], {}) == [
        f"the worker is degraded: {message}",
        f"{SOURCE}: boom",
    ]
    message = f"Worker is ready. But connector {SOURCE}: boom"
    degraded = HealthSummary(status="degraded", message=message)
    assert problem_lines(degraded, [connector(SOURCE, "boom")], {}) == [f"{SOURCE}: boom"]


def test_a_healthy_worker_has_no_line() -> None:
    assert problem_lines(HEALTHY, [connector()], {SOURCE: [partition(0)]}) == []


def test_a_worker_that_no_connector_can_ask_has_one_line() -> None:
    reasons = {"b:1": "no connection to http://b:1: refused"}
    assert unreachable_lines([reasons, {}, reasons]) == [
        "worker b:1 does not answer: no connection to http://b:1: refused"
    ]

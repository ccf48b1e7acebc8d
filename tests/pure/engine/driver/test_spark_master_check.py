"""A Spark master that does not answer is named, with the cause."""

from __future__ import annotations

import socket

import pytest

from sparkmirror.engine.driver.spark_master_check import (
    master_problem,
    slow_start_problem,
    standalone_addresses,
    start_failure,
)
from tests.support.reserved_port import reserved_port


@pytest.mark.parametrize(
    ("master", "addresses"),
    [
        ("spark://a:7077", [("a", 7077)]),
        ("spark://a:7077,b:7078", [("a", 7077), ("b", 7078)]),
        ("spark://[::1]:7077", [("::1", 7077)]),
        ("spark://a", []),
        ("local[4]", []),
        ("yarn", []),
        ("k8s://https://a:6443", []),
    ],
)
def test_only_standalone_masters_have_addresses(
    master: str, addresses: list[tuple[str, int]]
) -> None:
    assert standalone_addresses(master) == addresses


def test_a_master_that_refuses_connections_is_a_problem_with_its_url_and_cause() -> None:
    with reserved_port() as port:
        master = f"spark://127.0.0.1:{port}"
        with socket.create_server(("127.0.0.1", port)):
            assert master_problem(master) == ""
        assert master_problem(master) == (
            f"Spark master {master} does not answer: connection refused; check spark.master, and"
            " whether the master runs"
        )


def test_one_of_several_masters_is_enough() -> None:
    errors = {("a", 1): "connection refused", ("b", 1): ""}
    assert master_problem("spark://a:1,b:1", errors.__getitem__) == ""
    assert "does not answer" in master_problem("spark://a:1", errors.__getitem__)


def test_a_spark_that_does_not_start_names_the_master_and_not_java() -> None:
    slow = slow_start_problem("spark://a:1", 20.0, "/l")
    stopped = "Spark did not start: Cannot call methods on a stopped SparkContext."
    failed = start_failure("spark://a:1", stopped, "/l")
    for text in (slow, failed):
        assert "Spark master spark://a:1" in text
        assert "check spark.master" in text
        assert text.endswith("see /l")
    assert "stopped SparkContext" not in failed
    assert "YARN says no" in start_failure("yarn", "YARN says no", "/l")

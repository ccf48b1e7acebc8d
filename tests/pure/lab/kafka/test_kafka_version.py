"""Versions of Kafka are compared by their numbers."""

from __future__ import annotations

import pytest

from sparkmirror.lab.kafka.kafka_version import is_before, needs_zookeeper


def test_versions_are_compared_by_numbers_and_not_as_text() -> None:
    assert is_before("3.9.2", 3, 10)
    assert is_before("3.9.2", 4)
    assert not is_before("10.0.0", 4)
    assert not is_before("4.2.0-rc1", 4, 2)


@pytest.mark.parametrize(
    ("version", "needed"), [("2.8.2", True), ("3.0.2", True), ("3.3.0", False), ("4.3.1", False)]
)
def test_versions_before_3_3_need_zookeeper(version: str, needed: bool) -> None:
    assert needs_zookeeper(version) is needed

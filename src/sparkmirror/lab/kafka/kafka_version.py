"""Compares versions of Kafka, which are text such as "4.3.1" or "4.4.0-rc1"."""

from __future__ import annotations

import re


def is_before(version: str, *numbers: int) -> bool:
    """Return whether a version is older than another one, given as its first numbers."""
    found = tuple(int(number) for number in re.findall(r"\d+", version)[: len(numbers)])
    return found < numbers


def needs_zookeeper(version: str) -> bool:
    """Return whether brokers of a version need ZooKeeper.

    Kafka 3.3 is the first release whose KRaft mode is meant for use.
    """
    return is_before(version, 3, 3)

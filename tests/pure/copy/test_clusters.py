"""Looking for clusters that are not there."""

from __future__ import annotations

import socket
import time

import pytest

from sparkmirror.copy.clusters import FIRST_PATIENCE_S, Clusters
from sparkmirror.copy.settings import Settings
from sparkmirror.errors import ClusterError, ClusterUnavailable


def clusters(servers: str) -> Clusters:
    there = {"bootstrap.servers": servers}
    return Clusters.dial(Settings(source=there, target=there))


def test_a_cluster_that_is_not_there_is_told_soon_the_first_time() -> None:
    began = time.monotonic()
    with pytest.raises(ClusterUnavailable, match=r"source: .*127.0.0.1:1: connection refused"):
        clusters("127.0.0.1:1").find(["a"], ["a"])
    assert time.monotonic() - began < 25 * FIRST_PATIENCE_S


def test_a_mute_host_is_told_as_soon() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        began = time.monotonic()
        with pytest.raises(ClusterError, match=f"127.0.0.1:{mute.getsockname()[1]}"):
            clusters(f"127.0.0.1:{mute.getsockname()[1]}").find(["a"], ["a"])
        assert time.monotonic() - began < 25 * FIRST_PATIENCE_S


def test_a_slow_cluster_is_given_more_time_with_each_try() -> None:
    slow = clusters("127.0.0.1:1")
    slow.patience_s = 0.01
    given = []
    for _ in range(3):
        given.append(slow.patience_s)
        with pytest.raises(ClusterError):
            slow.find(["a"], ["a"])
    assert given == [0.01, 0.02, 0.04]

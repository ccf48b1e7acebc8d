"""A follower has one fetch waiting at each leader, and gets new records at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from sparkmirror.errors import CallCancelled
from sparkmirror.store.topic_follower import ERROR_WAIT_MS, FETCH_WAIT_MS, TopicFollower
from sparkmirror.store.topic_reader import TopicReader
from sparkmirror.wire.net.routing import Router
from tests.support.kafka.log_brokers import FETCH, TOPIC, LogBrokers, running_log_brokers
from tests.support.waiting import wait_until

PROMPT_S = FETCH_WAIT_MS / 1000 * 0.75
"""Less than a broker waits for new records before it answers without any."""


@contextmanager
def follower_of(cluster: LogBrokers) -> Iterator[tuple[TopicFollower, Router]]:
    with closing(cluster.router()) as router:
        yield TopicFollower(router, TopicReader(router, TOPIC)), router


def poll_until_records(follower: TopicFollower) -> list[bytes | None]:
    while True:
        records, _ = follower.poll()
        if records:
            return [consumed.record.value for consumed in records]


def test_only_the_first_fetch_does_not_wait_for_new_records() -> None:
    with running_log_brokers(1, 2) as cluster, follower_of(cluster) as (follower, _):
        for _ in range(2):
            assert follower.poll() == ([], None)
        assert cluster.fetch_waits_ms == [0, FETCH_WAIT_MS]
        assert [one.partitions for one in cluster.requests_of(FETCH)] == [(0, 1), (0, 1)]


def test_a_record_at_one_leader_comes_at_once_while_fetches_wait_at_the_others() -> None:
    with running_log_brokers(3, 3) as cluster, follower_of(cluster) as (follower, _):
        while len(cluster.requests_of(FETCH)) < 6:  # the second fetch of each leader waits
            follower.poll()
        began = time.monotonic()
        for number in range(5):
            cluster.append(1, b"%d" % number)
            assert poll_until_records(follower) == [b"%d" % number]
        assert time.monotonic() - began < PROMPT_S
        by_leader = [one.broker for one in cluster.requests_of(FETCH)]
        assert by_leader.count(0) <= 3
        assert by_leader.count(2) <= 3


def test_a_moved_partition_is_followed_at_its_new_leader() -> None:
    with running_log_brokers(2, 2) as cluster, follower_of(cluster) as (follower, _):
        follower.poll()
        cluster.move_leader(0, 1)
        _, error = follower.poll()
        while error is None:
            _, error = follower.poll()
        cluster.append(0, b"a")
        assert poll_until_records(follower) == [b"a"]
        assert ERROR_WAIT_MS in cluster.fetch_waits_ms


def test_a_partition_without_leader_does_not_hold_the_others() -> None:
    with running_log_brokers(2, 2) as cluster, follower_of(cluster) as (follower, _):
        follower.poll()
        cluster.move_leader(0, -1)
        cluster.append(1, b"a")
        assert poll_until_records(follower) == [b"a"]
        _, error = follower.poll()
        assert "no leader for partition 0" in str(error)
        cluster.move_leader(0, 0)
        cluster.append(0, b"b")
        assert poll_until_records(follower) == [b"b"]


def test_cancel_ends_a_poll_at_once() -> None:
    with running_log_brokers(2, 2) as cluster, follower_of(cluster) as (follower, router):
        ended: list[float] = []

        def poll_for_ever() -> None:
            with pytest.raises(CallCancelled):
                while True:
                    follower.poll()
            ended.append(time.monotonic())

        thread = threading.Thread(target=poll_for_ever)
        thread.start()
        wait_until(lambda: cluster.fetch_waits_ms[2:] == [FETCH_WAIT_MS] * 2, "waiting fetches")
        began = time.monotonic()
        router.cancel()
        thread.join(20)
        assert ended[0] - began < PROMPT_S
        with pytest.raises(CallCancelled):
            follower.poll()

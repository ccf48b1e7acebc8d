"""A follower has one fetch waiting at each leader, and gets new records at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

import pytest

from sparkmirror.errors import CallCancelled
from sparkmirror.store import topic_follower
from sparkmirror.store.topic_follower import FETCH_WAIT_MS, TopicFollower
from sparkmirror.store.topic_reader import TopicReader
from sparkmirror.wire.net.routing import Router
from tests.support.kafka.log_brokers import FETCH, TOPIC, LogBrokers, running_log_brokers
from tests.support.waiting import wait_until

LONG_WAIT_MS = 7_000
PROMPT_S = 4.0
"""Less than a broker waits for new records before it answers, on a busy computer too."""


@contextmanager
def follower_of(cluster: LogBrokers) -> Iterator[tuple[TopicFollower, Router]]:
    with closing(cluster.router()) as router:
        yield TopicFollower(router, TopicReader(router, TOPIC)), router


@contextmanager
def following(cluster: LogBrokers) -> Iterator[tuple[list[bytes | None], TopicFollower]]:
    """Poll in another thread; the list gets the values. The end of the block cancels the poll."""
    values: list[bytes | None] = []
    with follower_of(cluster) as (follower, router):

        def poll_for_ever() -> None:
            with suppress(CallCancelled):
                while True:
                    values.extend(consumed.record.value for consumed in follower.poll().records)

        thread = threading.Thread(target=poll_for_ever)
        thread.start()
        try:
            yield values, follower
        finally:
            router.cancel()
            thread.join(20)
            assert not thread.is_alive()


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


def test_a_record_at_one_leader_comes_at_once_while_fetches_wait_at_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(topic_follower, "FETCH_WAIT_MS", LONG_WAIT_MS)
    with running_log_brokers(3, 3) as cluster, following(cluster) as (values, _):
        wait_until(lambda: cluster.fetch_waits_ms.count(LONG_WAIT_MS) == 3, "waiting fetches")
        began = time.monotonic()
        for number in range(5):
            cluster.append(1, b"%d" % number)
            wait_until(lambda: len(values) > number, "the record")  # noqa: B023
        assert time.monotonic() - began < PROMPT_S
        assert values == [b"%d" % number for number in range(5)]
        by_leader = [one.broker for one in cluster.requests_of(FETCH)]
        assert (by_leader.count(0), by_leader.count(2)) == (2, 2), "they still wait"


def test_a_moved_partition_is_followed_at_its_new_leader() -> None:
    with running_log_brokers(2, 2) as cluster, follower_of(cluster) as (follower, _):
        follower.poll()
        cluster.move_leader(0, 1)
        _, error = follower.poll()
        while error is None:
            _, error = follower.poll()
        cluster.append(0, b"a")
        assert poll_until_records(follower) == [b"a"]


def test_a_partition_without_leader_does_not_hold_the_others() -> None:
    with running_log_brokers(2, 2) as cluster, follower_of(cluster) as (follower, _):
        follower.poll()
        cluster.move_leader(0, -1)
        cluster.append(1, b"a")
        assert poll_until_records(follower) == [b"a"]
        while "no leader for partition 0" not in str(follower.poll().error):
            pass  # the former leader says first that it leads no more
        cluster.move_leader(0, 0)
        cluster.append(0, b"b")
        assert poll_until_records(follower) == [b"b"]


def test_cancel_ends_a_poll_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_follower, "FETCH_WAIT_MS", LONG_WAIT_MS)
    with running_log_brokers(2, 2) as cluster:
        with following(cluster) as (_, follower):
            wait_until(lambda: cluster.fetch_waits_ms.count(LONG_WAIT_MS) == 2, "waiting fetches")
            began = time.monotonic()
        assert time.monotonic() - began < PROMPT_S
        with pytest.raises(CallCancelled):
            follower.poll()

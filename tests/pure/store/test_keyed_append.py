"""Keyed records reach their partitions in few requests, in order, whatever fails meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

import pytest

from sparkmirror.errors import ClusterError, ClusterUnavailable, RequestRefused
from sparkmirror.mirror.connect_topics.partitioner import partition_for
from sparkmirror.mirror.offsets.records import RecordBytes
from sparkmirror.store import keyed_append
from sparkmirror.store.keyed_append import append_keyed
from sparkmirror.wire.batch.message_format_v1 import NO_TIMESTAMP
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.synchronous import multi_partition_produce
from tests.support.kafka.log_brokers import PRODUCE, TOPIC, LogBrokers, running_log_brokers

NOW_MS = 1_700_000_000_000


@contextmanager
def routed_brokers(brokers: int, partitions: int) -> Iterator[tuple[LogBrokers, Router]]:
    with (
        running_log_brokers(brokers, partitions) as cluster,
        closing(cluster.router()) as router,
    ):
        yield cluster, router


def records_of(count: int, size: int = 10) -> list[RecordBytes]:
    return [RecordBytes(b"key-%d" % number, b"%0*d" % (size, number)) for number in range(count)]


def keys_of(number: int, partitions: int, count: int) -> list[bytes]:
    """Return keys that belong into one partition."""
    keys = (b"key-%d" % at for at in range(10_000))
    found = [key for key in keys if partition_for(key, partitions) == number]
    return found[:count]


def expected_values(records: Sequence[RecordBytes], number: int, partitions: int) -> list[object]:
    return [one.value for one in records if partition_for(one.key or b"", partitions) == number]


def assert_stored(cluster: LogBrokers, records: Sequence[RecordBytes]) -> None:
    count = len(cluster.leaders)
    for number in range(count):
        assert cluster.values(number) == expected_values(records, number, count)


def test_one_request_per_leader_appends_to_all_partitions() -> None:
    records = records_of(500)
    with routed_brokers(2, 25) as (cluster, router):
        append_keyed(router, TOPIC, records, NOW_MS)
        produced = cluster.requests_of(PRODUCE)
        assert sorted(one.broker for one in produced) == [0, 1]
        assert sum(len(one.partitions) for one in produced) == 25
        assert_stored(cluster, records)


def test_a_partition_that_fails_is_retried_alone() -> None:
    records = records_of(100)
    with routed_brokers(1, 5) as (cluster, router):
        retried: list[ClusterError] = []
        router.on_retry = retried.append
        cluster.append_codes[3].extend([ErrorCode.NOT_ENOUGH_REPLICAS] * 2)
        append_keyed(router, TOPIC, records, NOW_MS)
        requested = [one.partitions for one in cluster.requests_of(PRODUCE)]
        assert requested == [(0, 1, 2, 3, 4), (3,), (3,)]
        assert [f"{TOPIC}-3" in str(error) for error in retried] == [True, True]
        assert_stored(cluster, records)


def test_a_moved_leader_is_found_again() -> None:
    records = records_of(20)
    with routed_brokers(2, 4) as (cluster, router):
        append_keyed(router, TOPIC, records[:10], NOW_MS)
        cluster.move_leader(2, 1)
        append_keyed(router, TOPIC, records[10:], NOW_MS)
        assert_stored(cluster, records)


def test_batches_of_a_partition_keep_their_order_while_another_one_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A claim of a partition is decided by the order of the records of its key."""
    monkeypatch.setattr(keyed_append, "MAX_BATCH_BYTES", 100)
    slow, fast = keys_of(0, 2, 1), keys_of(1, 2, 1)
    records = [RecordBytes(key, b"%050d" % at) for at in range(9) for key in (*slow, *fast)]
    with routed_brokers(2, 2) as (cluster, router):
        append_keyed(router, TOPIC, records[:1], NOW_MS)
        cluster.append_codes[0].append(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        append_keyed(router, TOPIC, records[1:], NOW_MS)
        assert_stored(cluster, records)
        requested = [one.partitions for one in cluster.requests_of(PRODUCE)]
        first_retry = requested.index((0,), requested.index((0,), 1) + 1)
        assert (1,) not in requested[first_retry:], "the other partition does not wait"


def test_a_request_stays_below_the_limit_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multi_partition_produce, "MAX_REQUEST_BYTES", 3_000)
    records = records_of(10, size=1_000)
    with routed_brokers(1, 10) as (cluster, router):
        append_keyed(router, TOPIC, records, NOW_MS)
        assert_stored(cluster, records)
        produced = cluster.requests_of(PRODUCE)
        assert len(produced) > 2
        assert all(len(one.partitions) <= 2 for one in produced)


def test_timestamps_that_a_broker_refuses_are_left_out_in_that_partition() -> None:
    records = records_of(50)
    with routed_brokers(1, 2) as (cluster, router):
        cluster.append_codes[1].append(ErrorCode.INVALID_TIMESTAMP)
        append_keyed(router, TOPIC, records, NOW_MS)
        assert {one.timestamp for one in cluster.records(0)} == {NOW_MS}
        assert {one.timestamp for one in cluster.records(1)} == {NO_TIMESTAMP}
        assert_stored(cluster, records)


def test_a_refused_batch_is_an_error_and_the_others_are_appended() -> None:
    records = records_of(50)
    with routed_brokers(1, 2) as (cluster, router):
        cluster.append_codes[0].append(ErrorCode.MESSAGE_TOO_LARGE)
        with pytest.raises(RequestRefused, match=f"{TOPIC}-0"):
            append_keyed(router, TOPIC, records, NOW_MS)
        assert cluster.values(0) == []
        assert cluster.values(1) == expected_values(records, 1, 2)


def test_a_partition_without_a_leader_fails_after_the_time_limit() -> None:
    with routed_brokers(1, 2) as (cluster, router):
        cluster.leaders[0] = -1
        began = time.monotonic()
        with (
            pytest.raises(ClusterUnavailable, match=f"{TOPIC}-0 has no leader"),
            router.time_limit(0.5),
        ):
            append_keyed(router, TOPIC, records_of(50), NOW_MS)
        assert time.monotonic() - began < 8
        assert cluster.values(1) == expected_values(records_of(50), 1, 2)

"""One compacted topic, followed: read to its end, own writes read back, transactions, bad bytes."""

from __future__ import annotations

import logging
import time

import pytest

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.errors import LeadershipLost, RequestRefused, TopicMissing
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec
from sparkmirror.lab.kafka.jar_cache import TESTED_VERSIONS
from sparkmirror.mirror.connect_topics.partitioner import partition_for
from sparkmirror.mirror.offsets.records import RecordBytes
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.records import Record
from tests.support.connect.log_collector import collecting_log, create_compacted_topic
from tests.support.kafka.batch_writer import BatchWriter, now_ms
from tests.support.kafka.clusters import SharedCluster, StartCluster
from tests.support.waiting import wait_until

FETCHING_S = 900
"""The first time on a computer, the jars of another version are fetched before it can start."""
AT_ONCE_S = 0.3
"""Less than a broker waits for new records before it says that there are none."""


def numbered(count: int) -> list[RecordBytes]:
    return [RecordBytes(b"key %d" % n, b"value %d" % n) for n in range(count)]


def test_own_writes_are_read_back_and_others_follow_at_once(
    backup: SharedCluster, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    create_compacted_topic(backup.access, topic)
    caplog.set_level(logging.INFO)
    with (
        collecting_log(backup.access, topic) as ours,
        collecting_log(backup.access, topic) as theirs,
    ):
        assert f"Topic {topic} is empty" in caplog.text
        took, followed_after = [], []
        for number, record in enumerate(numbered(20)):
            begun = time.monotonic()
            ours.log.append([record])
            ours.log.read_to_end()
            took.append(time.monotonic() - begun)
            assert ours.records[-1] == record
            wait_until(lambda: len(theirs.records) > number, "the other one follows")  # noqa: B023
            followed_after.append(time.monotonic() - begun)
        assert ours.records == theirs.records == numbered(20)
        assert not any(entry.preexisting for entry in ours.entries)
        # Who looked only now and then would be late every time; a busy computer is so now and then.
        assert sorted(took)[5] < AT_ONCE_S, took
        assert sorted(followed_after)[5] < AT_ONCE_S, followed_after


def test_records_go_where_connect_looks_for_them_and_are_history_afterwards(
    backup: SharedCluster, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    create_compacted_topic(backup.access, topic, partitions=5)
    with collecting_log(backup.access, topic) as ours:
        ours.log.append(numbered(50))
        ours.log.read_to_end()
    caplog.set_level(logging.INFO)
    with collecting_log(backup.access, topic) as again:
        assert sorted(again.records) == sorted(numbered(50))
        for entry in again.entries:
            assert entry.record.key is not None
            assert entry.partition == partition_for(entry.record.key, 5)
            assert entry.preexisting
    assert (
        f"Read topic {topic} to its end: 50 records in 5 partitions; 0 offsets have no record"
        in caplog.text
    )


def test_many_large_records_do_not_need_one_large_batch(backup: SharedCluster, topic: str) -> None:
    create_compacted_topic(backup.access, topic)
    large = [RecordBytes(b"key %d" % n, b"." * 300_000) for n in range(8)]
    with collecting_log(backup.access, topic) as ours:
        ours.log.append(large)
        ours.log.read_to_end()
        assert ours.records == large


def test_missing_topic_is_told(backup: SharedCluster, topic: str) -> None:
    with (
        pytest.raises(TopicMissing, match=f"there is no topic {topic}"),
        collecting_log(backup.access, topic),
    ):
        pass


def test_only_committed_transactions_count_even_behind_an_open_one(
    backup: SharedCluster, topic: str
) -> None:
    create_compacted_topic(backup.access, topic)
    partition, writer = TopicPartition(topic, 0), BatchWriter(backup.access)
    opened = writer.begin_transaction(f"{topic}-open")
    opened.write_batch(partition, [Record(0, now_ms(), b"open", b"1")])
    aborted = writer.begin_transaction(f"{topic}-aborted")
    aborted.write_batch(partition, [Record(0, now_ms(), b"aborted", b"1")])
    aborted.abort()
    committed = writer.begin_transaction(f"{topic}-committed")
    committed.write_batch(partition, [Record(0, now_ms(), b"committed", b"1")])
    committed.commit()
    with collecting_log(backup.access, topic) as ours:
        wait_until(
            lambda: ours.records == [RecordBytes(b"committed", b"1")], "what is committed counts"
        )
        opened.commit()
        wait_until(
            lambda: ours.records[1:] == [RecordBytes(b"open", b"1")], "it counts when it is over"
        )
    writer.close()


def test_new_claim_shuts_out_the_older_one(backup: SharedCluster, topic: str) -> None:
    create_compacted_topic(backup.access, topic)
    claim = f"connect-cluster-{topic}"
    one, two, three = numbered(3)
    with (
        collecting_log(backup.access, topic, claim) as first,
        collecting_log(backup.access, topic, claim) as second,
    ):
        with pytest.raises(LeadershipLost, match="has not claimed"):
            first.log.append_privileged([one])
        first.log.claim_write_privileges()
        first.log.append_privileged([one, two])
        first.log.read_to_end()
        assert first.records == [one, two]
        second.log.claim_write_privileges()
        with pytest.raises(LeadershipLost, match="claim anew if this worker leads"):
            first.log.append_privileged([three])
        second.log.append_privileged([three])
        second.log.read_to_end()
        assert second.records == [one, two, three]
        first.log.append([one])
        second.log.read_to_end()
        assert second.records == [one, two, three, one]
        first.log.claim_write_privileges()
        first.log.append_privileged([two])


def test_claimed_write_that_brokers_refuse_leaves_nothing_behind(
    backup: SharedCluster, topic: str
) -> None:
    claimed_write_is_refused(backup.access, topic)


@pytest.mark.timeout(FETCHING_S)
def test_claims_hold_on_brokers_without_raising_epochs(
    start_cluster: StartCluster, topic: str
) -> None:
    old = start_cluster(ClusterSpec(name="old", version=TESTED_VERSIONS[-1], fast_start=True))
    claimed_write_is_refused(old.access(), topic)


def claimed_write_is_refused(access: ClusterAccess, topic: str) -> None:
    create_compacted_topic(access, topic)
    one, two, three = numbered(3)
    too_large = RecordBytes(b"large", b"." * 2_000_000)
    claim = f"connect-cluster-{topic}"
    with (
        collecting_log(access, topic, claim) as first,
        collecting_log(access, topic, claim) as second,
    ):
        first.log.claim_write_privileges()
        first.log.append_privileged([one])
        with pytest.raises(RequestRefused, match="MESSAGE_TOO_LARGE"):
            first.log.append_privileged([one, too_large])
        with pytest.raises(RequestRefused, match="MESSAGE_TOO_LARGE"):
            first.log.append_privileged([too_large])
        first.log.append_privileged([two])
        first.log.append_privileged([one, two])
        first.log.read_to_end()
        assert first.records == [one, two, one, two]
        second.log.claim_write_privileges()
        with pytest.raises(LeadershipLost):
            first.log.append_privileged([three])
        second.log.append_privileged([three])
        second.log.read_to_end()
        assert second.records == [one, two, one, two, three]

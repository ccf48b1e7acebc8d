"""A log on a topic: it reads to the end, reads its own records back, and fences older writers."""

from __future__ import annotations

import logging
import time

import pytest

from sparkmirror.errors import LeadershipLost, TopicMissing
from sparkmirror.mirror.connect_topics.partitioner import partition_for
from sparkmirror.mirror.offsets.records import RecordBytes
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.records import Record
from tests.support.connect.log_collector import (
    assert_refused_append_leaves_no_record,
    collecting_log,
    create_compacted_topic,
)
from tests.support.kafka.batch_writer import BatchWriter, now_ms
from tests.support.kafka.clusters import SharedCluster
from tests.support.waiting import wait_until

PROMPT_S = 0.3
"""Less than a broker waits for new records before it answers without any."""


def numbered_records(count: int) -> list[RecordBytes]:
    return [RecordBytes(b"key %d" % n, b"value %d" % n) for n in range(count)]


def test_own_records_are_read_back_and_other_readers_get_them_promptly(
    backup: SharedCluster, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    create_compacted_topic(backup.access, topic)
    caplog.set_level(logging.INFO)
    with (
        collecting_log(backup.access, topic) as first,
        collecting_log(backup.access, topic) as second,
    ):
        assert f"Topic {topic} is empty" in caplog.text
        read_back_s, followed_s = [], []
        for number, record in enumerate(numbered_records(20)):
            started = time.monotonic()
            first.log.append([record])
            first.log.read_to_end()
            read_back_s.append(time.monotonic() - started)
            assert first.records[-1] == record
            wait_until(lambda: len(second.records) > number, "the other log to read it")  # noqa: B023
            followed_s.append(time.monotonic() - started)
        assert first.records == second.records == numbered_records(20)
        assert not any(entry.preexisting for entry in first.entries)
        # A reader that polls at intervals is always late, a busy computer only sometimes.
        assert sorted(read_back_s)[5] < PROMPT_S, read_back_s
        assert sorted(followed_s)[5] < PROMPT_S, followed_s


def test_records_go_to_the_partition_of_their_key_and_are_preexisting_after_a_restart(
    backup: SharedCluster, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    create_compacted_topic(backup.access, topic, partitions=5)
    with collecting_log(backup.access, topic) as first:
        first.log.append(numbered_records(50))
        first.log.read_to_end()
    caplog.set_level(logging.INFO)
    with collecting_log(backup.access, topic) as again:
        assert sorted(again.records) == sorted(numbered_records(50))
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
    with collecting_log(backup.access, topic) as first:
        first.log.append(large)
        first.log.read_to_end()
        assert first.records == large


def test_missing_topic_is_an_error(backup: SharedCluster, topic: str) -> None:
    with (
        pytest.raises(TopicMissing, match=f"there is no topic {topic}"),
        collecting_log(backup.access, topic),
    ):
        pass


def test_only_committed_transactions_are_read_even_after_an_open_one(
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
    with collecting_log(backup.access, topic) as first:
        wait_until(
            lambda: first.records == [RecordBytes(b"committed", b"1")],
            "the committed record to be read",
        )
        opened.commit()
        wait_until(
            lambda: first.records[1:] == [RecordBytes(b"open", b"1")],
            "the record to be read after its commit",
        )
    writer.close()


def test_a_new_claim_fences_the_older_one(backup: SharedCluster, topic: str) -> None:
    create_compacted_topic(backup.access, topic)
    transactional_id = f"connect-cluster-{topic}"
    one, two, three = numbered_records(3)
    with (
        collecting_log(backup.access, topic, transactional_id) as first,
        collecting_log(backup.access, topic, transactional_id) as second,
    ):
        with pytest.raises(LeadershipLost, match="has not claimed"):
            first.log.append_privileged([one])
        first.log.claim_write_privileges()
        first.log.append_privileged([one, two])
        first.log.read_to_end()
        assert first.records == [one, two]
        second.log.claim_write_privileges()
        with pytest.raises(LeadershipLost, match="claim again if this worker leads"):
            first.log.append_privileged([three])
        second.log.append_privileged([three])
        second.log.read_to_end()
        assert second.records == [one, two, three]
        first.log.append([one])
        second.log.read_to_end()
        assert second.records == [one, two, three, one]
        first.log.claim_write_privileges()
        first.log.append_privileged([two])


def test_a_refused_privileged_append_leaves_no_record(backup: SharedCluster, topic: str) -> None:
    assert_refused_append_leaves_no_record(backup.access, topic)

"""The ledger in the offsets topic: the bytes and the partitions that Connect expects."""

from __future__ import annotations

from contextlib import closing

from sparkmirror.copy.lease import LeaseIdentity
from sparkmirror.copy.ledger import LedgerChange, LedgerEntry, LedgerExtension, encode_entry
from sparkmirror.engine.driver.offsets_topic_stores import OffsetsTopicLedger
from sparkmirror.mirror.connect_topics.connect_offsets import StoredOffset, source_partition
from sparkmirror.mirror.connect_topics.partitioner import partition_for
from sparkmirror.model import TopicPartition
from sparkmirror.store.offsets_topic import OffsetsTopic
from tests.support.kafka.log_brokers import PRODUCE, TOPIC, LogBrokers, running_log_brokers

PARTITIONS = [TopicPartition("größe", number) for number in range(30)]


def entry_at(position: int) -> LedgerEntry:
    return LedgerEntry(
        position=position,
        extension=LedgerExtension(
            expected=position + 7,
            identity=LeaseIdentity(producer_id=5, producer_epoch=1, anchor=3),
            is_open=True,
            conductor="worker-1",
        ),
    )


def assert_stored(cluster: LogBrokers, position: int) -> None:
    """Assert that the last record of each key is an entry in the partition of its key."""
    count = len(cluster.leaders)
    for partition in PARTITIONS:
        record = StoredOffset(
            connector="mm2",
            partition=source_partition("A", partition),
            offset=encode_entry(entry_at(position)),
        ).encode()
        assert record.key is not None
        records = cluster.records(partition_for(record.key, count))
        assert [one.value for one in records if one.key == record.key][-1] == record.value


def test_entries_are_written_with_connects_bytes_into_connects_partitions() -> None:
    with running_log_brokers(2, 5) as cluster, closing(cluster.router()) as router:
        ledger = OffsetsTopicLedger(OffsetsTopic(router, TOPIC), "mm2", "A")
        for position in (1, 2):
            ledger.save(dict.fromkeys(PARTITIONS, entry_at(position)))
            assert_stored(cluster, position)
        assert len(cluster.requests_of(PRODUCE)) == 4, "one request per leader and save"
        assert ledger.load() == dict.fromkeys(PARTITIONS, entry_at(2))


def test_entries_follow_a_changed_number_of_partitions() -> None:
    with running_log_brokers(1, 2) as cluster, closing(cluster.router()) as router:
        ledger = OffsetsTopicLedger(OffsetsTopic(router, TOPIC), "mm2", "A")
        ledger.save(dict.fromkeys(PARTITIONS, entry_at(1)))
        cluster.add_partitions(7)
        router.refresh([TOPIC])
        ledger.save(dict.fromkeys(PARTITIONS, entry_at(2)))
        assert_stored(cluster, 2)


def test_changes_have_the_order_of_the_log() -> None:
    """A claim is won if no other conductor wrote before it."""
    with running_log_brokers(3, 6) as cluster, closing(cluster.router()) as router:
        ledger = OffsetsTopicLedger(OffsetsTopic(router, TOPIC), "mm2", "A")
        ledger.load()
        positions = range(1, 6)
        for position in positions:
            ledger.save({PARTITIONS[0]: entry_at(position), PARTITIONS[1]: entry_at(position)})
        changes = ledger.changes()
        for partition in PARTITIONS[:2]:
            found = [change for change in changes if change.partition == partition]
            assert found == [LedgerChange(partition, entry_at(at)) for at in positions]
        assert ledger.changes() == []

"""One reader of the offsets topic for many conductors: each gets what it would have read alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial

import pytest

from sparkmirror.copy.lease import LeaseIdentity
from sparkmirror.copy.ledger import LedgerChange, LedgerEntry, LedgerExtension, encode_entry
from sparkmirror.engine.driver.offsets_topic_stores import OffsetsTopicLedger, collapse_unread
from sparkmirror.engine.driver.topic_readers import shared_topic_reader
from sparkmirror.engine.driver.topic_readers.shared_topic_reader import (
    SharedTopicReader,
    TopicSubscription,
)
from sparkmirror.engine.driver.topic_readers.topic_reader_registry import TopicReaderRegistry
from sparkmirror.errors import CallCancelled, ClusterUnavailable
from sparkmirror.mirror.connect_topics.connect_offsets import StoredOffset, source_partition
from sparkmirror.mirror.offsets.records import RecordBytes
from sparkmirror.model import TopicPartition
from sparkmirror.store.offsets_topic import OffsetsTopic
from sparkmirror.store.topic_reader import ConsumedRecord, TopicReader
from sparkmirror.wire.net.routing import Router
from tests.support.connect.in_memory_herder import poll_until
from tests.support.kafka.log_brokers import (
    FETCH,
    LIST_OFFSETS,
    TOPIC,
    LogBrokers,
    running_log_brokers,
)

PARTITION = TopicPartition("orders", 0)


@pytest.fixture(autouse=True)
def _reads_are_those_of_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_topic_reader, "FOLLOW_S", 3600.0)


def entry_at(position: int, conductor: str = "worker-1") -> LedgerEntry:
    return LedgerEntry(
        position=position,
        extension=LedgerExtension(
            expected=position,
            identity=LeaseIdentity(producer_id=5, producer_epoch=1, anchor=3),
            is_open=True,
            conductor=conductor,
        ),
    )


class Ledgers:
    """Ledgers of connectors in one offsets topic, which one process reads."""

    def __init__(self, cluster: LogBrokers) -> None:
        self.readers = TopicReaderRegistry()
        self._cluster = cluster
        self._topics: list[OffsetsTopic] = []

    def open(self, connector: str, login: str = "") -> OffsetsTopicLedger:
        def subscribe(
            router: Router, topic: str, is_wanted: Callable[[bytes], bool]
        ) -> TopicSubscription:
            return self.readers.subscribe(
                login, topic, self._cluster.router, router, is_wanted, collapse_unread
            )

        topic = OffsetsTopic(self._cluster.router(), TOPIC, subscribe)
        self._topics.append(topic)
        return OffsetsTopicLedger(topic, connector, "A")

    def close(self) -> None:
        for topic in self._topics:
            topic.close()


@contextmanager
def running_ledgers() -> Iterator[tuple[LogBrokers, Ledgers]]:
    with running_log_brokers(2, 5) as cluster, closing(Ledgers(cluster)) as ledgers:
        yield cluster, ledgers
    poll_until(lambda: "shared-topic-reader" not in thread_names(), "the end of the reader")


def thread_names() -> list[str]:
    return [thread.name for thread in threading.enumerate()]


def test_each_ledger_gets_its_own_entries_and_the_topic_is_fetched_once() -> None:
    with running_ledgers() as (cluster, ledgers):
        names = [f"c{number}" for number in range(6)]
        for number, name in enumerate(names):
            ledgers.open(name).save({PARTITION: entry_at(number)})
        loaded = [ledgers.open(name).load() for name in names]
        assert loaded == [{PARTITION: entry_at(number)} for number in range(6)]
        fetched = [one for request in cluster.requests_of(FETCH) for one in request.partitions]
        assert len(fetched) == len(set(fetched)), "no partition is fetched for a second ledger"
        assert thread_names().count("shared-topic-reader") == 1


def test_a_call_returns_what_was_written_before_it_in_the_order_of_the_log() -> None:
    with running_ledgers() as (_, ledgers):
        first, second = ledgers.open("c"), ledgers.open("c")
        other = ledgers.open("d")
        for ledger in (first, second, other):
            ledger.load()
        first.save({PARTITION: entry_at(1, "first")})
        assert second.changes() == [LedgerChange(PARTITION, entry_at(1, "first"))]
        second.save({PARTITION: entry_at(2, "second")})
        both = [
            LedgerChange(PARTITION, entry_at(1, "first")),
            LedgerChange(PARTITION, entry_at(2, "second")),
        ]
        assert first.changes() == both
        assert second.changes() == both[1:]
        assert other.changes() == []
        assert first.changes() == []


def test_a_ledger_that_joins_late_begins_with_the_newest_entry_and_follows() -> None:
    with running_ledgers() as (_, ledgers):
        early = ledgers.open("c")
        early.load()
        for position in range(4):
            early.save({PARTITION: entry_at(position)})
        late = ledgers.open("c")
        assert late.load() == {PARTITION: entry_at(3)}
        early.save({PARTITION: entry_at(4)})
        assert late.changes() == [LedgerChange(PARTITION, entry_at(4))]


def test_calls_that_wait_share_the_next_read() -> None:
    with running_ledgers() as (cluster, ledgers), ThreadPoolExecutor(8) as pool:
        all_of_them = [ledgers.open(f"c{number}") for number in range(8)]
        for ledger in all_of_them:
            ledger.load()
        before = len(cluster.requests_of(LIST_OFFSETS))
        with cluster.paused():
            calls = [pool.submit(ledger.changes) for ledger in all_of_them]
            poll_until(lambda: len(cluster.requests_of(LIST_OFFSETS)) > before, "the first read")
        assert [call.result() for call in calls] == [[]] * 8
        reads = (len(cluster.requests_of(LIST_OFFSETS)) - before) / 2  # one request per broker
        assert reads <= 4


def test_a_cancelled_call_ends_and_the_others_get_their_records() -> None:
    with running_ledgers() as (cluster, ledgers), ThreadPoolExecutor(2) as pool:
        cancelled, other = ledgers.open("c"), ledgers.open("d")
        cancelled.load()
        other.load()
        other.save({PARTITION: entry_at(1)})
        with cluster.paused():
            ended, waiting = pool.submit(cancelled.changes), pool.submit(other.changes)
            cancelled.cancel()
            with pytest.raises(CallCancelled):
                ended.result(timeout=10)
            assert not waiting.done()
        assert waiting.result() == [LedgerChange(PARTITION, entry_at(1))]


def test_an_error_reaches_every_call_of_the_read_and_no_record_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with running_ledgers() as (_, ledgers):
        first, second = open_pair_with_news(ledgers)
        with monkeypatch.context() as patch:
            patch.setattr(TopicReader, "move_end", raise_unavailable)
            for ledger in (first, second):
                with pytest.raises(ClusterUnavailable, match="no leader"):
                    ledger.changes()
        assert second.changes() == first.changes() == [LedgerChange(PARTITION, entry_at(1))]


def open_pair_with_news(ledgers: Ledgers) -> tuple[OffsetsTopicLedger, OffsetsTopicLedger]:
    """Open two ledgers of one connector that have not read its last entry yet."""
    first, second = ledgers.open("c"), ledgers.open("c")
    first.load()
    second.load()
    first.save({PARTITION: entry_at(1)})
    return first, second


def raise_unavailable(_reader: object) -> None:
    raise ClusterUnavailable("A", "no leader")


def test_after_a_bug_nothing_is_read_until_the_store_loads_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The reader may have skipped records, and a claim among them."""
    with running_ledgers() as (_, ledgers):
        first, second = open_pair_with_news(ledgers)
        with monkeypatch.context() as patch:
            patch.setattr(TopicSubscription, "offer", raise_bug)
            with pytest.raises(MemoryError, match="bug"):
                first.changes()
        for ledger in (first, second):
            with pytest.raises(MemoryError, match="bug"):
                ledger.changes()
        assert second.load() == {PARTITION: entry_at(1)}
        assert second.changes() == []


def raise_bug(*_: object) -> None:
    raise MemoryError("bug")


def test_a_call_that_waits_ends_when_its_store_is_closed() -> None:
    with running_ledgers() as (cluster, ledgers), ThreadPoolExecutor(2) as pool:
        closed, other = ledgers.open("c"), ledgers.open("d")
        closed.load()
        other.load()
        with cluster.paused():
            waiting, ended = pool.submit(other.changes), pool.submit(closed.changes)
            time.sleep(0.2)
            closed.close()
            with pytest.raises(CallCancelled):
                ended.result(timeout=10)
        assert waiting.result() == []


def test_a_topic_with_more_partitions_is_read_from_its_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shared_topic_reader, "PARTITIONS_CHECK_S", 0.0)
    with running_ledgers() as (cluster, ledgers):
        ledger = ledgers.open("c")
        ledger.load()
        many = [TopicPartition("orders", number) for number in range(20)]
        cluster.add_partitions(7)
        other = ledgers.open("c")
        other.save(dict.fromkeys(many, entry_at(1)))
        with pytest.raises(ClusterUnavailable, match="read from its beginning"):
            ledger.changes()
        found = {change.partition for change in ledger.changes()}
        assert found == set(many)
        assert other.load() == dict.fromkeys(many, entry_at(1))


def test_other_logins_read_alone() -> None:
    with running_ledgers() as (_, ledgers):
        first, second = ledgers.open("c", "alice"), ledgers.open("c", "bob")
        first.load()
        second.load()
        assert thread_names().count("shared-topic-reader") == 2


def test_without_a_call_the_reader_follows_the_topic_and_a_late_ledger_joins_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shared_topic_reader, "JOIN_S", 0.0)
    monkeypatch.setattr(shared_topic_reader, "FOLLOW_S", 0.01)
    with running_ledgers() as (cluster, ledgers):
        first, late = ledgers.open("c"), ledgers.open("c")
        first.load()
        first.save({PARTITION: entry_at(1)})
        (shared,) = ledgers.readers._readers.values()
        poll_until(lambda: has_unread(shared), "a read without a call")
        assert late.load() == {PARTITION: entry_at(1)}
        assert thread_names().count("shared-topic-reader") == 1
        assert first.changes() == [LedgerChange(PARTITION, entry_at(1))]


def has_unread(shared: SharedTopicReader) -> bool:
    with shared._condition:
        return any(subscription._unread for subscription in shared._subscriptions)


def test_many_newest_records_are_kept_for_a_while_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_topic_reader, "JOIN_S", 0.0)
    monkeypatch.setattr(shared_topic_reader, "MAX_NEWEST_BYTES", -1)
    with running_ledgers() as (_, ledgers):
        first, second = ledgers.open("c"), ledgers.open("c")
        first.load()
        first.save({PARTITION: entry_at(1)})
        poll_until(lambda: is_closed_to_others(ledgers), "no more subscriptions")
        assert second.load() == {PARTITION: entry_at(1)}
        assert first.changes() == [LedgerChange(PARTITION, entry_at(1))]


def is_closed_to_others(ledgers: Ledgers) -> bool:
    (shared,) = ledgers.readers._readers.values()
    return shared._newest is None


def test_unread_entries_collapse_and_tell_the_same_about_claims(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shared_topic_reader, "MAX_UNREAD", 10)
    with running_ledgers() as (_, ledgers):
        idle, busy, reader = (ledgers.open("c") for _ in range(3))
        for ledger in (idle, busy, reader):
            ledger.load()
        writers = [*["a"] * 30, "b", *["a"] * 30]
        for position, writer in enumerate(writers):
            busy.save({PARTITION: entry_at(position, writer)})
            reader.changes()
        found = [entry.extension for _, entry in idle.changes() if entry]
        assert len(found) < len(writers)
        changed = [one.conductor for one in found if one]
        assert list(dict.fromkeys(changed)) == ["a", "b"]
        assert changed[0] == changed[-1] == "a"
        assert found[-1] == entry_at(60, "a").extension


def record(position: int, conductor: str | None, topic: str = "orders") -> ConsumedRecord:
    stored = StoredOffset(
        connector="c",
        partition=source_partition("A", TopicPartition(topic, 0)),
        offset=encode_entry(entry_at(position, conductor or "")),
    ).encode()
    content = RecordBytes(stored.key, None) if conductor is None else stored
    return ConsumedRecord("t", 0, position, content, False)


def test_of_consecutive_entries_of_one_conductor_the_last_is_kept() -> None:
    mine, other, deleted = (partial(record, conductor=name) for name in ("a", "b", None))
    records = [
        mine(0), mine(1), other(2), mine(3, topic="x"), other(4), mine(5), deleted(6), deleted(7),
        mine(8, topic="x"), mine(9),
    ]  # fmt: skip
    assert [one.offset for one in collapse_unread(records)] == [1, 4, 5, 7, 8, 9]
    broken = mine(10)._replace(record=RecordBytes(mine(10).record.key, b"{"))
    assert collapse_unread([mine(9), broken]) == [mine(9), broken], "it replaces none"
    assert collapse_unread([]) == []

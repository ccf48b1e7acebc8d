"""The offset store: Connect's bytes, tombstones, bad records are logged."""

from __future__ import annotations

import pytest

from sparkmirror.mirror.connect_topics.connect_offsets import StoredOffset, source_partition
from sparkmirror.mirror.offsets.records import RecordBytes
from sparkmirror.model import TopicPartition
from sparkmirror.store.store_api import OffsetBackingStore
from tests.support.connect.in_memory_stores import MemoryLog, memory_offset_store
from tests.support.golden import golden_records

PARTITION = source_partition("A", TopicPartition("t", 0))
RECORDINGS = {
    "connect": ("topics/connect-mode.connect-topics.jsonl", "connect-offsets"),
    "dedicated": ("topics/dedicated-mode.connect-topics.jsonl", "mm2-offsets.A.internal"),
    "exactly-once": ("topics/exactly-once.connect-topics.jsonl", "connect-offsets"),
}


@pytest.mark.parametrize("name", RECORDINGS)
def test_the_same_calls_write_the_bytes_that_java_wrote(name: str) -> None:
    file, topic = RECORDINGS[name]
    records = [line.record for line in golden_records(file) if line.topic == topic]
    log = MemoryLog()
    store: OffsetBackingStore = memory_offset_store(log)
    store.start()
    for record in records:
        store.save([StoredOffset.decode(record)])
    assert log.records == records
    assert records


def test_the_last_offset_wins_and_none_deletes() -> None:
    store = memory_offset_store()
    store.start()
    first, second = (
        StoredOffset(connector="c", partition=PARTITION, offset={"offset": n}) for n in (1, 2)
    )
    store.save([first, second])
    assert store.connector_offsets("c") == (second,)
    store.save([StoredOffset(connector="c", partition=PARTITION, offset=None)])
    assert store.connector_offsets("c") == ()


def test_a_bad_record_is_logged_and_the_rest_is_read(caplog: pytest.LogCaptureFixture) -> None:
    good = StoredOffset(connector="c", partition=PARTITION, offset={"offset": 1})
    bad = RecordBytes(b"not json", b"{}")
    store = memory_offset_store(MemoryLog([bad, good.encode()], topic="connect-offsets"))
    store.start()
    assert store.connector_offsets("c") == (good,)
    assert "connect-offsets-0, at offset 0 with key b'not json'" in caplog.text

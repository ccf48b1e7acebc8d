"""The partition of a key is Kafka's."""

from __future__ import annotations

import pytest

from sparkmirror.mirror.connect_topics.partitioner import KeyPartitions, murmur2, partition_for
from tests.support.golden import golden_records

PARTITIONS = {"configs": 1, "offsets": 25, "status": 5}


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_gives_kafkas_hashes(key: bytes, expected: int) -> None:
    assert murmur2(key) == expected & 0xFFFFFFFF


@pytest.mark.parametrize(
    "file",
    [
        "connect-mode.connect-topics",
        "dedicated-mode.connect-topics",
        "dedicated-mode.reverse-connect-topics",
        "exactly-once.connect-topics",
        "config-providers.connect-configs",
    ],
)
def test_recorded_keys_are_in_the_computed_partition(file: str) -> None:
    for item in golden_records(f"topics/{file}.jsonl"):
        count = next(n for word, n in PARTITIONS.items() if word in item.topic)
        assert item.record.key is not None
        assert partition_for(item.record.key, count) == item.partition


def test_a_changed_number_of_partitions_moves_remembered_keys() -> None:
    remembered = KeyPartitions()
    keys = [b"key-%d" % number for number in range(200)]
    for count in (25, 25, 50, 25):
        found = [remembered.partition_for(key, count) for key in keys]
        assert found == [partition_for(key, count) for key in keys]

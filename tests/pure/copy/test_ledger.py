"""The ledger's values, losses, and the rate limit."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.copy.driver.cluster_queries import LogRange
from sparkmirror.copy.driver.data_loss import LossKind, find_loss
from sparkmirror.copy.job import DataLossPolicy
from sparkmirror.copy.ledger import LedgerEntry, decode_entry, encode_entry, entry_for_lease
from sparkmirror.copy.task.throttle import Throttle
from sparkmirror.mirror.connect_topics.connect_offsets import to_java_offset
from tests.pure.copy.task.test_partition_queue import lease


def test_an_entry_reads_back_as_it_was_written() -> None:
    entry = entry_for_lease(replace(lease(), records=42), is_open=True)
    assert decode_entry(encode_entry(entry)) == entry
    assert (encode_entry(entry)["offset"], encode_entry(entry)["records"]) == (99, 42)


def test_people_see_what_java_would_write() -> None:
    written = encode_entry(entry_for_lease(replace(lease(), records=42), is_open=True))
    assert to_java_offset(written) == {"offset": 99}


def test_an_entry_of_a_version_that_did_not_count_is_still_ours() -> None:
    value = encode_entry(entry_for_lease(replace(lease(), records=42), is_open=True))
    del value["records"]
    entry = decode_entry(value)
    assert entry
    assert entry.extension
    assert entry.extension.records == 0


@pytest.mark.parametrize(
    ("value", "entry"),
    [
        ({"offset": 99}, LedgerEntry(position=100)),
        ({"offset": -1}, LedgerEntry(position=0)),
        ({"offset": 99, "target": 3}, LedgerEntry(position=100)),
        (
            {"offset": 99, "target": "x", "pid": 1, "epoch": 1, "anchor": 0, "open": True},
            LedgerEntry(position=100),
        ),
        ({}, None),
        ({"offset": None}, None),
        ({"offset": "7"}, None),
        ({"offset": -5}, None),
    ],
)
def test_what_java_or_an_operator_wrote_is_taken_at_its_word(
    value: dict[str, object], entry: LedgerEntry | None
) -> None:
    assert decode_entry(value) == entry


def remembered(source_id: str = "s", target_id: str = "t") -> LedgerEntry:
    full = entry_for_lease(lease(), is_open=False)
    assert full.extension
    value = encode_entry(full) | {"source_id": source_id, "target_id": target_id}
    entry = decode_entry(value)
    assert entry
    return entry


@pytest.mark.parametrize(
    ("reach", "ids", "kind", "skip", "restart"),
    [
        (LogRange(start=0, end=200, high_watermark=200), ("s", "t"), None, None, None),
        (LogRange(start=100, end=100, high_watermark=100), ("s", "t"), None, None, None),
        (LogRange(start=0, end=200, high_watermark=200), ("", ""), None, None, None),
        (
            LogRange(start=120, end=200, high_watermark=200),
            ("s", "t"),
            LossKind.RETENTION,
            120,
            120,
        ),
        (LogRange(start=0, end=90, high_watermark=100), ("s", "t"), None, None, None),
        (LogRange(start=0, end=90, high_watermark=90), ("s", "t"), LossKind.TRUNCATED, 90, 0),
        (
            LogRange(start=0, end=200, high_watermark=200, epoch_end=70),
            ("s", "t"),
            LossKind.TRUNCATED,
            70,
            0,
        ),
        (
            LogRange(start=80, end=200, high_watermark=200, epoch_end=70),
            ("s", "t"),
            LossKind.TRUNCATED,
            80,
            80,
        ),
        (
            LogRange(start=0, end=200, high_watermark=200, epoch_end=100),
            ("s", "t"),
            None,
            None,
            None,
        ),
        (LogRange(start=5, end=200, high_watermark=200), ("other", "t"), LossKind.RECREATED, 5, 5),
        (
            LogRange(start=5, end=200, high_watermark=200),
            ("s", "other"),
            LossKind.REMOTE_RECREATED,
            100,
            5,
        ),
    ],
)
def test_every_loss_is_found_and_each_policy_knows_where_to_go_on(
    reach: LogRange,
    ids: tuple[str, str],
    kind: LossKind | None,
    skip: int | None,
    restart: int | None,
) -> None:
    loss = find_loss(remembered(), reach, ids)
    assert (loss.kind if loss else None) == kind
    if loss:
        assert loss.resume_position(DataLossPolicy.HALT) is None
        assert loss.resume_position(DataLossPolicy.SKIP) == skip
        assert loss.resume_position(DataLossPolicy.RESTART) == restart


def test_the_lost_range_is_named() -> None:
    loss = find_loss(remembered(), LogRange(start=120, end=200, high_watermark=200), ("s", "t"))
    assert loss
    assert (loss.lost_from, loss.lost_to) == (100, 120)
    assert "100 to 119" in loss.text


@given(st.lists(st.integers(1, 5000), min_size=20, max_size=60))
def test_a_throttle_keeps_the_rate_over_time(sizes: list[int]) -> None:
    throttle, now, total = Throttle(bytes_per_s=10_000), 100.0, 0
    assert throttle.allows(now)
    start = now
    for size in sizes:
        now += throttle.wait_s(now)
        assert throttle.allows(now)
        throttle.consume(size, now)
        total += size
    assert total <= (now - start) * 10_000 + 10_000 + max(sizes)


def test_no_rate_means_no_limit() -> None:
    throttle = Throttle()
    throttle.consume(1 << 40, 1.0)
    assert throttle.allows(1.0)
    assert throttle.wait_s(1.0) == 0.0

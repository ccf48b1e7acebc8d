"""The ledger's values, losses, and the rate limit."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.copy.clusters import Reach
from sparkmirror.copy.job import OnLoss
from sparkmirror.copy.ledger import Entry, entry_of, from_offset, to_offset
from sparkmirror.copy.losses import Kind, find_loss
from sparkmirror.copy.throttle import Throttle
from sparkmirror.mirror.connect_offsets import as_java_writes
from tests.pure.copy.test_partition import lease


def test_an_entry_reads_back_as_it_was_written() -> None:
    entry = entry_of(replace(lease(), records=42), is_open=True)
    assert from_offset(to_offset(entry)) == entry
    assert (to_offset(entry)["offset"], to_offset(entry)["records"]) == (99, 42)


def test_people_see_what_java_would_write() -> None:
    written = to_offset(entry_of(replace(lease(), records=42), is_open=True))
    assert as_java_writes(written) == {"offset": 99}


def test_an_entry_of_a_version_that_did_not_count_is_still_ours() -> None:
    value = to_offset(entry_of(replace(lease(), records=42), is_open=True))
    del value["records"]
    entry = from_offset(value)
    assert entry
    assert entry.ours
    assert entry.ours.records == 0


@pytest.mark.parametrize(
    ("value", "entry"),
    [
        ({"offset": 99}, Entry(position=100)),
        ({"offset": -1}, Entry(position=0)),
        ({"offset": 99, "target": 3}, Entry(position=100)),
        (
            {"offset": 99, "target": "x", "pid": 1, "epoch": 1, "anchor": 0, "open": True},
            Entry(position=100),
        ),
        ({}, None),
        ({"offset": None}, None),
        ({"offset": "7"}, None),
        ({"offset": -5}, None),
    ],
)
def test_what_java_or_an_operator_wrote_is_taken_at_its_word(
    value: dict[str, object], entry: Entry | None
) -> None:
    assert from_offset(value) == entry


def remembered(source_id: str = "s", target_id: str = "t") -> Entry:
    full = entry_of(lease(), is_open=False)
    assert full.ours
    value = to_offset(full) | {"source_id": source_id, "target_id": target_id}
    entry = from_offset(value)
    assert entry
    return entry


@pytest.mark.parametrize(
    ("reach", "ids", "kind", "skip", "restart"),
    [
        (Reach(start=0, end=200, high_watermark=200), ("s", "t"), None, None, None),
        (Reach(start=100, end=100, high_watermark=100), ("s", "t"), None, None, None),
        (Reach(start=0, end=200, high_watermark=200), ("", ""), None, None, None),
        (Reach(start=120, end=200, high_watermark=200), ("s", "t"), Kind.RETENTION, 120, 120),
        (Reach(start=0, end=90, high_watermark=100), ("s", "t"), None, None, None),
        (Reach(start=0, end=90, high_watermark=90), ("s", "t"), Kind.TRUNCATED, 90, 0),
        (
            Reach(start=0, end=200, high_watermark=200, epoch_end=70),
            ("s", "t"),
            Kind.TRUNCATED,
            70,
            0,
        ),
        (
            Reach(start=80, end=200, high_watermark=200, epoch_end=70),
            ("s", "t"),
            Kind.TRUNCATED,
            80,
            80,
        ),
        (Reach(start=0, end=200, high_watermark=200, epoch_end=100), ("s", "t"), None, None, None),
        (Reach(start=5, end=200, high_watermark=200), ("other", "t"), Kind.RECREATED, 5, 5),
        (
            Reach(start=5, end=200, high_watermark=200),
            ("s", "other"),
            Kind.REMOTE_RECREATED,
            100,
            5,
        ),
    ],
)
def test_every_loss_is_found_and_each_policy_knows_where_to_go_on(
    reach: Reach,
    ids: tuple[str, str],
    kind: Kind | None,
    skip: int | None,
    restart: int | None,
) -> None:
    loss = find_loss(remembered(), reach, ids)
    assert (loss.kind if loss else None) == kind
    if loss:
        assert loss.goes_on_at(OnLoss.HALT) is None
        assert loss.goes_on_at(OnLoss.SKIP) == skip
        assert loss.goes_on_at(OnLoss.RESTART) == restart


def test_the_lost_range_is_named() -> None:
    loss = find_loss(remembered(), Reach(start=120, end=200, high_watermark=200), ("s", "t"))
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
        throttle.spend(size, now)
        total += size
    assert total <= (now - start) * 10_000 + 10_000 + max(sizes)


def test_no_rate_means_no_limit() -> None:
    throttle = Throttle()
    throttle.spend(1 << 40, 1.0)
    assert throttle.allows(1.0)
    assert throttle.wait_s(1.0) == 0.0

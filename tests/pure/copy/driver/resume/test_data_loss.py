"""Which losses the driver finds at the source, and where it resumes."""

from __future__ import annotations

import pytest

from sparkmirror.copy.driver.cluster_queries import LogRange
from sparkmirror.copy.driver.resume.data_loss import LossKind, find_loss, renamed_from
from sparkmirror.copy.job import DataLossPolicy
from sparkmirror.copy.ledger import LedgerEntry, decode_entry, encode_entry, entry_for_lease
from tests.support.copy.pending_batches import make_lease


def stored_entry(source_id: str = "s", target_id: str = "t") -> LedgerEntry:
    ids = {"source_id": source_id, "target_id": target_id}
    value = encode_entry(entry_for_lease(make_lease(), is_open=False)) | ids
    entry = decode_entry(value)
    assert entry
    return entry


@pytest.mark.parametrize(
    ("stored", "stored_id", "remote", "now_id", "former"),
    [
        pytest.param("", "t", "A.x", "t", "", id="unchanged"),
        pytest.param("", "t", "A.x", "new", "", id="created-again"),
        pytest.param("", "t", "A-x", "new", "A.x", id="other-separator"),
        pytest.param("", "t", "x", "t", "", id="entry-of-an-earlier-version-without-a-name"),
        pytest.param("x", "t", "A.x", "new", "x", id="to-the-default-name"),
        pytest.param("old-x", "t", "new-x", "new", "old-x", id="other-route"),
        pytest.param("old-x", "t", "old-x", "new", "", id="routed-and-created-again"),
        pytest.param("", "", "x", "", "", id="no-ids-earlier-version"),
        pytest.param("A.x", "", "x", "", "A.x", id="no-ids-other-policy"),
        pytest.param("x", "", "x", "t", "", id="ids-after-an-upgrade-of-the-brokers"),
    ],
)
def test_another_name_of_the_remote_topic_is_known_by_name_and_topic_id(
    stored: str, stored_id: str, remote: str, now_id: str, former: str
) -> None:
    value = encode_entry(entry_for_lease(make_lease(), is_open=False))
    entry = decode_entry(value | {"target_id": stored_id} | ({"remote": stored} if stored else {}))
    assert entry
    assert renamed_from(entry, remote, "A.x", now_id) == former


@pytest.mark.parametrize(
    ("log_range", "ids", "kind", "skip", "restart"),
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
def test_every_loss_is_found_and_each_policy_names_the_resume_position(
    log_range: LogRange,
    ids: tuple[str, str],
    kind: LossKind | None,
    skip: int | None,
    restart: int | None,
) -> None:
    loss = find_loss(stored_entry(), log_range, ids)
    assert (loss.kind if loss else None) == kind
    if loss:
        assert loss.resume_position(DataLossPolicy.HALT) is None
        assert loss.resume_position(DataLossPolicy.SKIP) == skip
        assert loss.resume_position(DataLossPolicy.RESTART) == restart


def test_the_lost_range_is_named() -> None:
    loss = find_loss(stored_entry(), LogRange(start=120, end=200, high_watermark=200), ("s", "t"))
    assert loss
    assert (loss.lost_from, loss.lost_to) == (100, 120)
    assert "100 to 119" in loss.text


@pytest.mark.parametrize(
    ("known_end", "lost", "text"),
    [
        (150, (100, 150), "offsets 100 to 149 of the old topic, and any after them, are lost"),
        (100, (100, -1), "offsets from 100 on of the old topic, if there were any, are lost"),
        (-1, (100, -1), "offsets from 100 on of the old topic, if there were any, are lost"),
    ],
    ids=["behind", "caught-up", "unknown"],
)
def test_a_recreated_topic_has_the_lost_range_as_far_as_it_is_known(
    known_end: int, lost: tuple[int, int], text: str
) -> None:
    log_range = LogRange(start=0, end=7, high_watermark=7)
    loss = find_loss(stored_entry(), log_range, ("other", "t"), known_end)
    assert loss
    assert (loss.lost_from, loss.lost_to) == lost
    assert loss.text.endswith(text)

"""The values of the ledger in the offsets topic."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparkmirror.copy.lease import NOT_IDEMPOTENT, LeaseIdentity
from sparkmirror.copy.ledger import LedgerEntry, decode_entry, encode_entry, entry_for_lease
from sparkmirror.mirror.connect_topics.connect_offsets import to_java_offset
from tests.support.copy.pending_batches import make_lease

WITHOUT_PRODUCER_ID = replace(
    make_lease(),
    identity=LeaseIdentity(producer_id=NOT_IDEMPOTENT, producer_epoch=-1, anchor=40),
)


def test_an_entry_reads_back_as_it_was_written() -> None:
    entry = entry_for_lease(replace(make_lease(), records=42), is_open=True)
    assert decode_entry(encode_entry(entry)) == entry
    assert (encode_entry(entry)["offset"], encode_entry(entry)["records"]) == (99, 42)


@pytest.mark.parametrize("is_open", [True, False])
def test_an_earlier_version_takes_an_entry_without_a_producer_id_for_open(is_open: bool) -> None:
    entry = entry_for_lease(WITHOUT_PRODUCER_ID, is_open=is_open)
    written = encode_entry(entry)
    assert written["open"] is True
    assert decode_entry(written) == entry
    assert to_java_offset(written) == {"offset": 99}


def test_a_closed_entry_without_a_producer_id_in_the_first_form_is_read() -> None:
    entry = entry_for_lease(WITHOUT_PRODUCER_ID, is_open=False)
    first_form = encode_entry(entry) | {"open": False}
    del first_form["closed"]
    assert decode_entry(first_form) == entry


def test_an_operator_sees_what_java_would_write() -> None:
    written = encode_entry(entry_for_lease(replace(make_lease(), records=42), is_open=True))
    assert to_java_offset(written) == {"offset": 99}


def test_an_entry_without_a_record_count_keeps_its_extension() -> None:
    value = encode_entry(entry_for_lease(replace(make_lease(), records=42), is_open=True))
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
def test_an_entry_of_java_or_an_operator_has_a_position_and_no_extension(
    value: dict[str, object], entry: LedgerEntry | None
) -> None:
    assert decode_entry(value) == entry

"""The checksum: verified, and patched after a header change instead of recomputed."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.errors import BatchError
from sparkmirror.wire.batch.checksum import assemble_batch, crc32c, patched_crc, verify_crc
from sparkmirror.wire.batch.header import read_header
from tests.support.kafka.record_batches import (
    JAVA_BATCHES,
    build_stored_batch,
    random_records,
    read_batch,
)

FIELDS = st.binary(min_size=40, max_size=40)


@pytest.mark.parametrize(
    "name", [name for name, java in JAVA_BATCHES.items() if java.facts[0]["magic"] == 2]
)
def test_checksums_written_by_java_are_accepted(name: str) -> None:
    verify_crc(JAVA_BATCHES[name].header, JAVA_BATCHES[name].buffer)


@settings(max_examples=40)
@given(st.integers(0, 1 << 30))
def test_any_flipped_bit_under_the_checksum_is_detected(bit: int) -> None:
    batch = build_stored_batch(random_records(random.Random(4), most=5))
    place = 17 * 8 + bit % ((len(batch) - 17) * 8)
    batch[place // 8] ^= 1 << place % 8
    with pytest.raises(BatchError, match="its bytes are damaged"):
        verify_crc(read_header(batch), batch)


@settings(max_examples=40)
@given(old=FIELDS, new=FIELDS, body=st.binary(max_size=400))
def test_a_patched_checksum_equals_a_recomputed_one(old: bytes, new: bytes, body: bytes) -> None:
    assert patched_crc(crc32c(old + body, 0), old, new, len(body)) == crc32c(new + body, 0)


@settings(max_examples=40)
@given(old=FIELDS, new=FIELDS, body=st.binary(min_size=1, max_size=400), bit=st.integers(0, 9999))
def test_a_flipped_bit_in_the_body_is_detected_after_the_patch(
    old: bytes, new: bytes, body: bytes, bit: int
) -> None:
    """A recomputed checksum would hide the damage."""
    damaged = bytearray(body)
    damaged[bit // 8 % len(body)] ^= 1 << bit % 8
    crc = patched_crc(crc32c(old + body, 0), old, new, len(body))
    assert crc != crc32c(new + damaged, 0)


def test_an_assembled_batch_is_read_by_another_client() -> None:
    batch = build_stored_batch(random_records(random.Random(5)))
    again = assemble_batch(read_header(batch)._replace(length=0, crc=0), bytes(batch[61:]))
    assert again == batch
    assert read_batch(again) == read_batch(batch)

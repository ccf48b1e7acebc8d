"""The forward lane changes the header and keeps the records."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.errors import BatchError
from sparkmirror.wire.batch.checksum import verify_crc
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.header import read_header
from sparkmirror.wire.batch.lanes.forward import BatchProducer, forward_batch
from sparkmirror.wire.batch.sequence import next_sequence
from tests.support.kafka.record_batches import (
    DELETE_HORIZON,
    JAVA_BATCHES,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    build_stored_batch,
    random_records,
    read_batch,
    validate_as_broker,
    without_offsets,
)

OURS = BatchProducer(producer_id=1234, epoch=5)
SEEDS = st.integers(0, (1 << 32) - 1)


def forwarded(batch: bytes | bytearray, producer: BatchProducer = OURS, sequence: int = 0) -> bytes:
    """Forward a batch and join the parts, as the socket does."""
    front, records = forward_batch(read_header(batch), memoryview(batch), producer, sequence)
    assert len(front) == 61
    return front + records


@settings(max_examples=25)
@given(SEEDS)
def test_forwarding_keeps_the_contents_of_contiguous_batches(seed: int) -> None:
    """A broker accepts them. Contents, order and timestamps stay the same."""
    rng = random.Random(seed)
    sequence = rng.choice([0, (1 << 31) - 30])
    for _ in range(20):
        records = random_records(rng, most=12)
        batch = build_stored_batch(
            records, rng.choice(list(CompressionType)), bits=rng.choice([0, TRANSACTIONAL])
        )
        out = forwarded(batch, sequence=sequence)
        assert without_offsets(validate_as_broker(out)) == without_offsets(records)
        header = read_header(out)
        assert header.base_sequence == sequence
        assert out[61:] == batch[61:]
        verify_crc(header, out)
        sequence = next_sequence(sequence, header.record_count)


@settings(max_examples=50)
@given(SEEDS)
def test_damage_in_memory_is_detected_after_the_patch(seed: int) -> None:
    rng = random.Random(seed)
    batch = build_stored_batch(random_records(rng, most=6))
    header = read_header(batch)
    batch[61 + rng.randrange(len(batch) - 61)] ^= 1 << rng.randrange(8)
    front, records = forward_batch(header, memoryview(batch), OURS, 0)
    with pytest.raises(BatchError, match="damaged"):
        verify_crc(read_header(front), front + records)


def test_forwarding_does_not_copy_the_records_in_memory() -> None:
    buffer = bytearray(b"front of the response") + build_stored_batch(
        random_records(random.Random(9))
    )
    view = memoryview(buffer)[21:]
    _, records = forward_batch(read_header(view), view, OURS, 0)
    assert records.obj is buffer
    assert records.nbytes == len(buffer) - 21 - 61


def test_offset_epoch_and_producer_of_the_source_are_replaced() -> None:
    batch = build_stored_batch(random_records(random.Random(10)))
    assert read_header(batch).producer_id == 4711
    header = read_header(forwarded(batch, sequence=77))
    assert (header.base_offset, header.leader_epoch) == (0, -1)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (1234, 5, 77)


@pytest.mark.parametrize(
    "bit", [TRANSACTIONAL, DELETE_HORIZON, LOG_APPEND_TIME, 0x80, 0x4000], ids=hex
)
def test_attribute_bits_of_the_source_are_cleared(bit: int) -> None:
    batch = build_stored_batch(random_records(random.Random(11)), CompressionType.ZSTD, bits=bit)
    assert read_header(forwarded(batch)).attributes == CompressionType.ZSTD


def test_clearing_the_delete_horizon_keeps_timestamps() -> None:
    records = random_records(random.Random(12))
    batch = build_stored_batch(records, bits=DELETE_HORIZON)
    assert without_offsets(read_batch(forwarded(batch))) == without_offsets(records)


def test_a_transactional_producer_sets_the_transactional_bit() -> None:
    ours = BatchProducer(producer_id=1, epoch=0, transactional=True)
    out = forwarded(
        build_stored_batch(random_records(random.Random(13)), CompressionType.LZ4), ours
    )
    assert read_header(out).attributes == CompressionType.LZ4 | TRANSACTIONAL
    validate_as_broker(out)


def test_a_batch_without_a_producer_has_no_sequence() -> None:
    header = read_header(
        forwarded(build_stored_batch(random_records(random.Random(14))), BatchProducer(), 55)
    )
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)


def test_a_forwarded_batch_can_be_forwarded_for_another_producer() -> None:
    batch = build_stored_batch(random_records(random.Random(15)))
    assert forwarded(forwarded(batch, BatchProducer(producer_id=9, epoch=9), 9)) == forwarded(batch)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_batches_written_by_java_are_forwarded(codec: str) -> None:
    java = JAVA_BATCHES[f"v2 {codec} several blocks" if codec != "none" else "v2 none"]
    out = forwarded(bytes(java.buffer))
    assert without_offsets(validate_as_broker(out)) == without_offsets(
        read_batch(bytes(java.buffer))
    )


@pytest.mark.parametrize("name", ["v2 none compacted", "abort marker", "emptied"])
def test_batches_with_gaps_markers_or_no_records_are_not_forwarded(name: str) -> None:
    """`choose_lane` chooses another lane for them; this check finds its mistakes."""
    with pytest.raises(BatchError, match="about to be forwarded unopened"):
        forwarded(bytes(JAVA_BATCHES[name].buffer))


@pytest.mark.parametrize(
    "make",
    [
        lambda: BatchProducer(producer_id=1),
        lambda: BatchProducer(epoch=1),
        lambda: BatchProducer(transactional=True),
    ],
    ids=["no-epoch", "no-id", "transaction"],
)
def test_an_incomplete_producer_is_refused(make: type[BatchProducer]) -> None:
    with pytest.raises(ValueError, match="producer id"):
        make()

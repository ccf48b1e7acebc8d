"""The forward lane: a new header, the same records."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.errors import BatchError
from sparkmirror.wire.checksum import verify
from sparkmirror.wire.codecs import Codec
from sparkmirror.wire.forward import Producer, forward
from sparkmirror.wire.header import read_header
from sparkmirror.wire.sequence import next_sequence
from tests.support.batches import (
    DELETE_HORIZON,
    JAVA,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    accepted,
    consumed,
    contents,
    random_records,
    stored,
)

OURS = Producer(producer_id=1234, epoch=5)
SEEDS = st.integers(0, (1 << 32) - 1)


def sent(batch: bytes | bytearray, producer: Producer = OURS, sequence: int = 0) -> bytes:
    """Forward a batch and join the parts, as the socket does."""
    front, records = forward(read_header(batch), memoryview(batch), producer, sequence)
    assert len(front) == 61
    return front + records


@settings(max_examples=25)
@given(SEEDS)
def test_contiguous_batches_arrive_with_the_same_contents(seed: int) -> None:
    """500 random batches: accepted by a broker's rules, contents, order and times the same."""
    rng = random.Random(seed)
    sequence = rng.choice([0, (1 << 31) - 30])
    for _ in range(20):
        records = random_records(rng, most=12)
        batch = stored(records, rng.choice(list(Codec)), bits=rng.choice([0, TRANSACTIONAL]))
        out = sent(batch, sequence=sequence)
        assert contents(accepted(out)) == contents(records)
        header = read_header(out)
        assert header.base_sequence == sequence
        assert out[61:] == batch[61:]
        verify(header, out)
        sequence = next_sequence(sequence, header.record_count)


@settings(max_examples=50)
@given(SEEDS)
def test_damage_in_memory_is_still_found_after_the_patch(seed: int) -> None:
    """Trap 18."""
    rng = random.Random(seed)
    batch = stored(random_records(rng, most=6))
    header = read_header(batch)
    batch[61 + rng.randrange(len(batch) - 61)] ^= 1 << rng.randrange(8)
    front, records = forward(header, memoryview(batch), OURS, 0)
    with pytest.raises(BatchError, match="damaged"):
        verify(read_header(front), front + records)


def test_the_records_are_not_copied() -> None:
    buffer = bytearray(b"front of the response") + stored(random_records(random.Random(9)))
    view = memoryview(buffer)[21:]
    _, records = forward(read_header(view), view, OURS, 0)
    assert records.obj is buffer
    assert records.nbytes == len(buffer) - 21 - 61


def test_what_belongs_to_the_source_stays_there() -> None:
    """Traps 3 and 6: base offset, leader epoch and the source's producer."""
    batch = stored(random_records(random.Random(10)))
    assert read_header(batch).producer_id == 4711
    header = read_header(sent(batch, sequence=77))
    assert (header.base_offset, header.leader_epoch) == (0, -1)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (1234, 5, 77)


@pytest.mark.parametrize(
    "bit", [TRANSACTIONAL, DELETE_HORIZON, LOG_APPEND_TIME, 0x80, 0x4000], ids=hex
)
def test_attribute_bits_are_cleared(bit: int) -> None:
    """Trap 5 (transaction), 12 (delete horizon), 11 (log append time), and bits unknown so far."""
    batch = stored(random_records(random.Random(11)), Codec.ZSTD, bits=bit)
    assert read_header(sent(batch)).attributes == Codec.ZSTD


def test_clearing_the_delete_horizon_moves_no_timestamp() -> None:
    records = random_records(random.Random(12))
    batch = stored(records, bits=DELETE_HORIZON)
    assert contents(consumed(sent(batch))) == contents(records)


def test_a_transactional_producer_sets_the_bit() -> None:
    ours = Producer(producer_id=1, epoch=0, transactional=True)
    out = sent(stored(random_records(random.Random(13)), Codec.LZ4), ours)
    assert read_header(out).attributes == Codec.LZ4 | TRANSACTIONAL
    accepted(out)


def test_without_a_producer_there_is_no_sequence() -> None:
    header = read_header(sent(stored(random_records(random.Random(14))), Producer(), 55))
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)


def test_a_forwarded_batch_can_be_given_to_another_producer() -> None:
    batch = stored(random_records(random.Random(15)))
    assert sent(sent(batch, Producer(producer_id=9, epoch=9), 9)) == sent(batch)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_java_wrote_is_forwarded(codec: str) -> None:
    java = JAVA[f"v2 {codec} several blocks" if codec != "none" else "v2 none"]
    out = sent(bytes(java.buffer))
    assert contents(accepted(out)) == contents(consumed(bytes(java.buffer)))


@pytest.mark.parametrize("name", ["v2 none compacted", "abort marker", "emptied"])
def test_what_must_not_be_forwarded_is_refused(name: str) -> None:
    """Traps 1 and 7: the last guard, should a lane ever be wrong."""
    with pytest.raises(BatchError, match="about to be forwarded unopened"):
        sent(bytes(JAVA[name].buffer))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Producer(producer_id=1),
        lambda: Producer(epoch=1),
        lambda: Producer(transactional=True),
    ],
    ids=["no-epoch", "no-id", "transaction"],
)
def test_half_a_producer_is_refused(make: type[Producer]) -> None:
    with pytest.raises(ValueError, match="producer id"):
        make()

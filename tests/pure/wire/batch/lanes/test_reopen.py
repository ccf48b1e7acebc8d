"""The reopen lane puts the same records into batches that the target accepts."""

from __future__ import annotations

import random
from collections.abc import Sequence

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.errors import BatchError
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.header import read_header
from sparkmirror.wire.batch.lanes.forward import BatchProducer, forward_batch
from sparkmirror.wire.batch.lanes.reopen import (
    OversizedRecord,
    ReopenedBatch,
    SourceRun,
    reopen_batch,
)
from sparkmirror.wire.batch.records import Record, build_batch
from sparkmirror.wire.batch.sequence import next_sequence
from sparkmirror.wire.batch.target_limits import TargetLimits
from tests.support.kafka.record_batches import (
    DELETE_HORIZON,
    JAVA_BATCHES,
    LOG_APPEND_TIME,
    NOW_MS,
    TRANSACTIONAL,
    WITHOUT_ZSTD,
    build_stored_batch,
    fix_checksum,
    random_records,
    read_batch,
    validate_as_broker,
    without_offsets,
)

SEEDS = st.integers(0, (1 << 32) - 1)
UNLIMITED = TargetLimits()


def reopened(
    batch: bytes | bytearray | memoryview, target: TargetLimits = UNLIMITED, position: int = 0
) -> list[ReopenedBatch]:
    """Reopen a batch that has no oversized record."""
    pieces = list(reopen_batch(read_header(batch), batch, position, target))
    return [piece for piece in pieces if isinstance(piece, ReopenedBatch)]


def source_offsets(pieces: Sequence[ReopenedBatch]) -> list[int]:
    """Return the source offsets in the runs of pieces."""
    return [
        run.first_source_offset + step
        for piece in pieces
        for run in piece.runs
        for step in range(run.length)
    ]


def first_and_last_offsets(pieces: Sequence[ReopenedBatch]) -> list[tuple[int, int]]:
    return [(source_offsets([piece])[0], source_offsets([piece])[-1]) for piece in pieces]


@settings(max_examples=25)
@given(SEEDS)
def test_reopening_keeps_the_contents_of_batches(seed: int) -> None:
    """A broker accepts each piece, sequences are consecutive, and the runs cover every record."""
    rng = random.Random(seed)
    producer, sequence = BatchProducer(producer_id=8, epoch=1), (1 << 31) - 50
    for _ in range(16):
        records = random_records(rng, gaps=rng.random() < 0.7, most=25)
        bits = sum(rng.sample([LOG_APPEND_TIME, TRANSACTIONAL, DELETE_HORIZON], rng.randrange(3)))
        batch = build_stored_batch(
            records, rng.choice(list(CompressionType)), bits=bits, tail=rng.choice([0, 3])
        )
        limit = rng.choice([700, 1500, 1 << 20])
        target = TargetLimits(
            max_message_bytes=limit, codecs=rng.choice([WITHOUT_ZSTD, UNLIMITED.codecs])
        )
        position = rng.choice([0, rng.choice(records).offset, records[-1].offset + 1])
        kept = [one for one in read_batch(batch) if one.offset >= position]
        pieces = reopened(batch, target, position)
        assert source_offsets(pieces) == [one.offset for one in kept]
        arrived: list[Record] = []
        for piece in pieces:
            view = memoryview(piece.batch)
            front, body = forward_batch(read_header(view), view, producer, sequence)
            arrived += validate_as_broker(front + body, limit)
            sequence = next_sequence(sequence, sum(run.length for run in piece.runs))
        assert without_offsets(arrived) == without_offsets(kept)


@settings(max_examples=15)
@given(SEEDS)
def test_a_batch_is_split_at_the_same_offsets_from_every_position(seed: int) -> None:
    """A task that sends records again must send the same ranges."""
    rng = random.Random(seed)
    records = random_records(rng, gaps=True, most=30)
    batch = build_stored_batch(records, rng.choice(list(CompressionType)))
    target = TargetLimits(max_message_bytes=900)
    whole = first_and_last_offsets(reopened(batch, target))
    for record in records[::4]:
        cut = first_and_last_offsets(reopened(batch, target, record.offset))
        left = [(low, high) for low, high in whole if high >= record.offset]
        assert cut == [(max(low, record.offset), high) for low, high in left]


def test_reopening_twice_gives_the_same_bytes() -> None:
    batch = build_stored_batch(random_records(random.Random(20), gaps=True), CompressionType.LZ4)
    assert reopened(batch) == reopened(bytes(batch)) == reopened(memoryview(batch))


def test_gaps_are_closed_and_runs_have_the_source_offsets() -> None:
    batch = build_batch(
        [Record(offset, NOW_MS, b"k", b"v") for offset in (170, 172, 173, 176, 179)]
    )
    (piece,) = reopened(batch)
    assert [one.offset for one in validate_as_broker(piece.batch)] == [0, 1, 2, 3, 4]
    assert piece.runs == (
        SourceRun(170, 1),
        SourceRun(172, 2),
        SourceRun(176, 1),
        SourceRun(179, 1),
    )


def test_records_below_the_position_are_dropped_and_the_others_renumbered() -> None:
    batch = build_batch(
        [Record(offset, NOW_MS + offset, None, b"%d" % offset) for offset in range(500)]
    )
    (piece,) = reopened(batch, position=130)
    records = validate_as_broker(piece.batch)
    assert [one.value for one in records] == [b"%d" % offset for offset in range(130, 500)]
    assert piece.runs == (SourceRun(130, 370),)


def test_a_batch_whose_records_are_all_below_the_position_gives_no_piece() -> None:
    batch = build_stored_batch([Record(5, NOW_MS, b"k", b"v")], tail=10)
    assert reopened(batch, position=6) == []


def test_log_append_time_becomes_the_timestamp_of_each_record() -> None:
    """If only the bit were cleared, the records would have their producers' timestamps."""
    records = random_records(random.Random(21))
    batch = build_stored_batch(records, bits=LOG_APPEND_TIME)
    appended_at = read_header(batch).max_timestamp
    (piece,) = reopened(batch)
    assert {one.timestamp for one in validate_as_broker(piece.batch)} == {appended_at}
    assert [one.value for one in validate_as_broker(piece.batch)] == [one.value for one in records]


def test_timestamps_are_kept_if_the_target_replaces_them() -> None:
    records = random_records(random.Random(22), gaps=True)
    batch = build_stored_batch(records, bits=LOG_APPEND_TIME)
    (piece,) = reopened(batch, TargetLimits(log_append_time=True))
    assert without_offsets(validate_as_broker(piece.batch)) == without_offsets(records)


@pytest.mark.parametrize("codec", CompressionType, ids=lambda codec: codec.config_name)
def test_a_large_batch_is_split_until_each_piece_fits(codec: CompressionType) -> None:
    """The limit is for the compressed batch."""
    rng = random.Random(23)
    records = [Record(n, NOW_MS + n, b"%d" % n, rng.randbytes(400)) for n in range(300)]
    batch = build_batch(records, codec)
    target = TargetLimits(max_message_bytes=20_000)
    assert len(batch) > 5 * target.max_message_bytes
    pieces = reopened(batch, target)
    arrived = [one for piece in pieces for one in validate_as_broker(piece.batch, 20_000)]
    assert without_offsets(arrived) == without_offsets(records)
    assert all(read_header(piece.batch).codec_id == codec for piece in pieces)
    assert 6 <= len(pieces) <= 8


def test_a_batch_is_split_by_bytes_not_by_records() -> None:
    sizes = [10] * 90 + [5000] * 4
    batch = build_batch([Record(n, NOW_MS, None, bytes(size)) for n, size in enumerate(sizes)])
    pieces = reopened(batch, TargetLimits(max_message_bytes=12_000))
    assert first_and_last_offsets(pieces) == [(0, 91), (92, 93)]


def test_a_batch_as_large_as_the_limit_is_not_split() -> None:
    batch = build_batch([Record(n, NOW_MS, b"k", b"value") for n in range(20)])
    assert len(reopened(batch, TargetLimits(max_message_bytes=len(batch)))) == 1
    assert len(reopened(batch, TargetLimits(max_message_bytes=len(batch) - 1))) == 2


def test_a_record_larger_than_the_limit_is_reported_between_its_neighbours() -> None:
    records = [Record(40 + n, NOW_MS, b"k", b"small") for n in range(10)]
    records[3] = records[3]._replace(value=bytes(3000))
    results = list(
        reopen_batch(
            read_header(batch := build_batch(records)),
            batch,
            0,
            TargetLimits(max_message_bytes=1000),
        )
    )
    place = next(n for n, one in enumerate(results) if isinstance(one, OversizedRecord))
    alone = len(build_batch([records[3]]))
    assert results[place] == OversizedRecord(source_offset=43, size=alone, limit=1000)
    before = [one for one in results[:place] if isinstance(one, ReopenedBatch)]
    after = [one for one in results[place + 1 :] if isinstance(one, ReopenedBatch)]
    assert source_offsets(before) == [40, 41, 42]
    assert source_offsets(after) == [44, 45, 46, 47, 48, 49]


def test_an_oversized_record_below_the_position_is_not_reported() -> None:
    records = [Record(0, NOW_MS, b"k", bytes(3000)), Record(1, NOW_MS, b"k", b"small")]
    batch = build_batch(records)
    results = list(reopen_batch(read_header(batch), batch, 1, TargetLimits(max_message_bytes=1000)))
    assert [type(one) for one in results] == [ReopenedBatch]


def test_a_codec_that_the_target_lacks_is_replaced() -> None:
    records = random_records(random.Random(24))
    (piece,) = reopened(
        build_stored_batch(records, CompressionType.ZSTD), TargetLimits(codecs=WITHOUT_ZSTD)
    )
    assert read_header(piece.batch).codec_id == CompressionType.LZ4
    assert without_offsets(validate_as_broker(piece.batch)) == without_offsets(records)


def test_lz4_pieces_beyond_one_block_have_independent_blocks() -> None:
    """A block is 64 KB, so the batch is larger."""
    records = [Record(2 * n, NOW_MS, b"k", b"some words %d " % n * 100) for n in range(200)]
    (piece,) = reopened(build_batch(records, CompressionType.LZ4))
    assert piece.batch[61 + 4] & 0x20
    assert without_offsets(validate_as_broker(piece.batch)) == without_offsets(records)


def test_raw_snappy_is_reopened() -> None:
    """librdkafka writes one block without a header."""
    records = random_records(random.Random(27), gaps=True)
    batch = build_stored_batch(records)
    batch[61:] = bytes(cramjam.snappy.compress_raw(bytes(batch[61:])))
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    batch[22] |= CompressionType.SNAPPY
    (piece,) = reopened(fix_checksum(batch))
    assert without_offsets(validate_as_broker(piece.batch)) == without_offsets(records)


@pytest.mark.parametrize("codec", CompressionType, ids=lambda codec: codec.config_name)
def test_a_batch_compacted_by_java_is_reopened(codec: CompressionType) -> None:
    """It has gaps, offsets after its last record, tombstones and a delete horizon."""
    java = JAVA_BATCHES[f"v2 {codec.config_name} compacted"]
    (piece,) = reopened(java.buffer)
    kept = read_batch(bytes(java.buffer))
    assert without_offsets(validate_as_broker(piece.batch)) == without_offsets(kept)
    assert source_offsets([piece]) == [one.offset for one in kept] == list(range(300, 480, 3))


def test_each_piece_has_its_own_max_timestamp() -> None:
    times = [5, 900, -1, 7, 3, 2]
    batch = build_batch([Record(n, time, None, bytes(300)) for n, time in enumerate(times)])
    pieces = reopened(batch, TargetLimits(max_message_bytes=1100))
    assert [read_header(piece.batch).max_timestamp for piece in pieces] == [900, 7]


def test_a_batch_with_more_records_than_the_varint_table_is_reopened() -> None:
    records = [Record(3 * n, NOW_MS, None, b"") for n in range(8500)]
    (piece,) = reopened(build_batch(records))
    header = read_header(piece.batch)
    assert (header.record_count, header.last_offset_delta) == (8500, 8499)
    assert [one.offset for one in read_batch(piece.batch)] == list(range(8500))


def test_a_damaged_batch_gets_no_new_checksum() -> None:
    """The source's checksum is verified first."""
    batch = build_stored_batch(random_records(random.Random(25), gaps=True))
    batch[-1] ^= 1
    with pytest.raises(BatchError, match="damaged"):
        reopen_batch(read_header(batch), batch, 0, UNLIMITED)


def test_a_batch_that_decompresses_beyond_the_limit_is_refused() -> None:
    batch = build_batch([Record(0, NOW_MS, None, bytes(100_000))], CompressionType.ZSTD)
    with pytest.raises(BatchError, match="offset 0: .*at most 50000 bytes"):
        reopen_batch(read_header(batch), batch, 0, UNLIMITED, decompressed_limit=50_000)


def test_an_unknown_codec_is_refused() -> None:
    batch = build_stored_batch(random_records(random.Random(26)), bits=5)
    with pytest.raises(BatchError, match="codec 5"):
        reopened(batch)

"""Codecs: what other clients write is read, what we write Kafka takes, and nothing runs away."""

from __future__ import annotations

import gzip
import random

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.errors import BatchError
from sparkmirror.wire.batch.compression import XERIAL_MAGIC, CompressionType, compress, decompress

COMPRESSED = [codec for codec in CompressionType if codec != CompressionType.NONE]
TEXT = b"".join(b'{"id": %d, "state": "ready"}' % number for number in range(20_000))


def labelled(codec: CompressionType) -> str:
    return codec.config_name


def test_codecs_have_kafkas_numbers_and_names() -> None:
    assert [(codec.value, codec.config_name) for codec in CompressionType] == [
        (0, "none"),
        (1, "gzip"),
        (2, "snappy"),
        (3, "lz4"),
        (4, "zstd"),
    ]


@pytest.mark.parametrize("codec", CompressionType, ids=labelled)
@settings(max_examples=12)
@given(data=st.binary(max_size=2000))
def test_what_is_written_is_read_back(codec: CompressionType, data: bytes) -> None:
    assert decompress(codec, compress(codec, data)) == data


@pytest.mark.parametrize("codec", CompressionType, ids=labelled)
def test_large_batches_are_read_back_from_views(codec: CompressionType) -> None:
    squeezed = memoryview(bytearray(compress(codec, memoryview(TEXT))))
    assert decompress(codec, squeezed) == TEXT
    assert codec == CompressionType.NONE or len(squeezed) < len(TEXT) / 2


def test_lz4_blocks_are_independent() -> None:
    """Trap 19: Kafka refuses linked blocks, and one block (64 KB) would not show it."""
    frame = bytes(compress(CompressionType.LZ4, TEXT))
    assert len(TEXT) > 4 * 65_536
    version, independent, content_checksum = frame[4] >> 6, frame[4] & 0x20, frame[4] & 0x04
    assert (version, bool(independent), bool(content_checksum)) == (1, True, False)


def test_linked_lz4_blocks_are_read() -> None:
    assert decompress(CompressionType.LZ4, bytes(cramjam.lz4.compress(TEXT))) == TEXT


def test_snappy_is_read_in_both_framings() -> None:
    """Trap 20: Java frames blocks of 32 KB, librdkafka sends one raw block."""
    framed = bytes(compress(CompressionType.SNAPPY, TEXT))
    raw = bytes(cramjam.snappy.compress_raw(TEXT))
    assert framed.startswith(XERIAL_MAGIC)
    assert not raw.startswith(XERIAL_MAGIC)
    assert (
        decompress(CompressionType.SNAPPY, framed)
        == decompress(CompressionType.SNAPPY, raw)
        == TEXT
    )


def test_snappy_framing_is_known_by_its_magic_alone() -> None:
    """Some writers put the version numbers in the other byte order."""
    framed = bytearray(compress(CompressionType.SNAPPY, TEXT))
    framed[8:16] = (1).to_bytes(4, "little") * 2
    assert decompress(CompressionType.SNAPPY, framed) == TEXT


def test_gzip_streams_in_a_row_are_read_as_one() -> None:
    assert (
        decompress(CompressionType.GZIP, gzip.compress(b"one ") + gzip.compress(b"two"))
        == b"one two"
    )


def test_gzip_is_read_by_the_standard_library() -> None:
    assert gzip.decompress(compress(CompressionType.GZIP, TEXT)) == TEXT


@pytest.mark.parametrize("codec", CompressionType, ids=labelled)
def test_inflating_stops_at_the_bound(codec: CompressionType) -> None:
    squeezed = compress(codec, TEXT)
    assert decompress(codec, squeezed, limit=len(TEXT)) == TEXT
    for limit in (0, 1000, len(TEXT) - 1):
        with pytest.raises(BatchError, match=str(limit)):
            decompress(codec, squeezed, limit=limit)


@pytest.mark.parametrize("codec", COMPRESSED, ids=labelled)
def test_a_bomb_costs_no_more_than_the_bound(codec: CompressionType) -> None:
    bomb = bytes(compress(codec, bytes(1 << 24)))
    with pytest.raises(BatchError):
        decompress(codec, bomb, limit=1 << 20)


def test_a_lie_about_the_size_is_not_believed() -> None:
    four_gigabytes = b"\xff\xff\xff\xff\x0f"
    with pytest.raises(BatchError, match="more than"):
        decompress(CompressionType.SNAPPY, four_gigabytes + b"\0a")


@pytest.mark.parametrize("codec", COMPRESSED, ids=labelled)
def test_damaged_data_is_a_batch_error(codec: CompressionType) -> None:
    rng = random.Random(6)
    squeezed = bytes(compress(codec, TEXT[:3000]))
    for _ in range(60):
        damaged = bytearray(squeezed)
        for _ in range(3):
            damaged[rng.randrange(len(damaged))] ^= rng.randrange(1, 256)
        cut = damaged[: rng.randrange(len(damaged) + 1)]
        for data in (bytes(damaged), bytes(cut), rng.randbytes(50)):
            try:
                assert len(decompress(codec, data, limit=10_000)) <= 10_000
            except BatchError:
                continue


@pytest.mark.parametrize(
    "codec", [CompressionType.GZIP, CompressionType.LZ4, CompressionType.ZSTD], ids=labelled
)
def test_data_cut_short_is_refused(codec: CompressionType) -> None:
    squeezed = bytes(compress(codec, TEXT[:3000]))
    with pytest.raises(BatchError):
        decompress(codec, squeezed[:-3], limit=10_000)


@pytest.mark.parametrize("length", [0, -1, 1 << 20])
def test_an_impossible_snappy_block_is_refused(length: int) -> None:
    block = XERIAL_MAGIC + bytes(8) + length.to_bytes(4, "big", signed=True) + b"ab"
    with pytest.raises(BatchError, match=f"claims {length} bytes"):
        decompress(CompressionType.SNAPPY, block)


@pytest.mark.parametrize("number", [5, 6, 7])
def test_a_codec_from_the_future_is_refused(number: int) -> None:
    with pytest.raises(BatchError, match=f"codec {number}"):
        CompressionType.for_id(number)

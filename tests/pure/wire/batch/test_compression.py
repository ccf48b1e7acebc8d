"""Codecs read what other clients write, write what brokers accept, and limit decompression."""

from __future__ import annotations

import gzip
import random
import tracemalloc

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.errors import BatchError
from sparkmirror.wire.batch.compression import XERIAL_MAGIC, CompressionType, compress, decompress

COMPRESSED = [codec for codec in CompressionType if codec != CompressionType.NONE]
TEXT = b"".join(b'{"id": %d, "state": "ready"}' % number for number in range(20_000))


def codec_name(codec: CompressionType) -> str:
    return codec.config_name


def test_codecs_have_kafkas_numbers_and_names() -> None:
    assert [(codec.value, codec.config_name) for codec in CompressionType] == [
        (0, "none"),
        (1, "gzip"),
        (2, "snappy"),
        (3, "lz4"),
        (4, "zstd"),
    ]


@pytest.mark.parametrize("codec", CompressionType, ids=codec_name)
@settings(max_examples=12)
@given(data=st.binary(max_size=2000))
def test_compressed_data_decompresses_to_the_same_bytes(
    codec: CompressionType, data: bytes
) -> None:
    assert decompress(codec, compress(codec, data)) == data


@pytest.mark.parametrize("codec", CompressionType, ids=codec_name)
def test_large_batches_decompress_from_views(codec: CompressionType) -> None:
    compressed = memoryview(bytearray(compress(codec, memoryview(TEXT))))
    assert decompress(codec, compressed) == TEXT
    assert codec == CompressionType.NONE or len(compressed) < len(TEXT) / 2


def test_lz4_blocks_are_independent() -> None:
    """Kafka refuses linked blocks. A block is 64 KB, so the data is larger."""
    frame = bytes(compress(CompressionType.LZ4, TEXT))
    assert len(TEXT) > 4 * 65_536
    version, independent, content_checksum = frame[4] >> 6, frame[4] & 0x20, frame[4] & 0x04
    assert (version, bool(independent), bool(content_checksum)) == (1, True, False)


def test_linked_lz4_blocks_are_read() -> None:
    assert decompress(CompressionType.LZ4, bytes(cramjam.lz4.compress(TEXT))) == TEXT


def test_snappy_is_read_in_both_framings() -> None:
    """Java frames blocks of 32 KB; librdkafka sends one raw block."""
    framed = bytes(compress(CompressionType.SNAPPY, TEXT))
    raw = bytes(cramjam.snappy.compress_raw(TEXT))
    assert framed.startswith(XERIAL_MAGIC)
    assert not raw.startswith(XERIAL_MAGIC)
    assert (
        decompress(CompressionType.SNAPPY, framed)
        == decompress(CompressionType.SNAPPY, raw)
        == TEXT
    )


def test_snappy_framing_is_recognised_by_its_magic_alone() -> None:
    """Some clients write the version numbers in the other byte order."""
    framed = bytearray(compress(CompressionType.SNAPPY, TEXT))
    framed[8:16] = (1).to_bytes(4, "little") * 2
    assert decompress(CompressionType.SNAPPY, framed) == TEXT


def test_consecutive_gzip_streams_are_read_as_one() -> None:
    assert (
        decompress(CompressionType.GZIP, gzip.compress(b"one ") + gzip.compress(b"two"))
        == b"one two"
    )


def test_gzip_is_read_by_the_standard_library() -> None:
    assert gzip.decompress(compress(CompressionType.GZIP, TEXT)) == TEXT


@pytest.mark.parametrize("codec", CompressionType, ids=codec_name)
def test_decompression_stops_at_the_limit(codec: CompressionType) -> None:
    compressed = compress(codec, TEXT)
    assert decompress(codec, compressed, limit=len(TEXT)) == TEXT
    for limit in (0, 1000, len(TEXT) - 1):
        with pytest.raises(BatchError, match=str(limit)):
            decompress(codec, compressed, limit=limit)


@pytest.mark.parametrize("codec", COMPRESSED, ids=codec_name)
def test_highly_compressed_data_is_refused_beyond_the_limit(codec: CompressionType) -> None:
    zeros = bytes(compress(codec, bytes(1 << 24)))
    with pytest.raises(BatchError):
        decompress(codec, zeros, limit=1 << 20)


def test_a_declared_size_beyond_the_limit_is_refused() -> None:
    four_gigabytes = b"\xff\xff\xff\xff\x0f"
    with pytest.raises(BatchError, match="more than"):
        decompress(CompressionType.SNAPPY, four_gigabytes + b"\0a")


@pytest.mark.parametrize("codec", COMPRESSED, ids=codec_name)
def test_damaged_data_raises_only_a_batch_error(codec: CompressionType) -> None:
    rng = random.Random(6)
    compressed = bytes(compress(codec, TEXT[:3000]))
    for _ in range(60):
        damaged = bytearray(compressed)
        for _ in range(3):
            damaged[rng.randrange(len(damaged))] ^= rng.randrange(1, 256)
        cut = damaged[: rng.randrange(len(damaged) + 1)]
        for data in (bytes(damaged), bytes(cut), rng.randbytes(50)):
            try:
                assert len(decompress(codec, data, limit=10_000)) <= 10_000
            except BatchError:
                continue


@pytest.mark.parametrize(
    "codec", [CompressionType.GZIP, CompressionType.LZ4, CompressionType.ZSTD], ids=codec_name
)
def test_truncated_data_is_refused(codec: CompressionType) -> None:
    compressed = bytes(compress(codec, TEXT[:3000]))
    with pytest.raises(BatchError):
        decompress(codec, compressed[:-3], limit=10_000)


@pytest.mark.parametrize("codec", [CompressionType.LZ4, CompressionType.ZSTD], ids=codec_name)
def test_damaged_data_takes_no_more_memory_than_it_could_become(codec: CompressionType) -> None:
    compressed = bytearray(compress(codec, bytes(random.Random(7).choices(b"abcd", k=3000))))
    refused = 0
    tracemalloc.start()
    try:
        for position in range(len(compressed)):
            damaged = bytearray(compressed)
            damaged[position] ^= 0x55
            try:
                decompress(codec, damaged)
            except BatchError:
                refused += 1
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert refused > 0
    assert peak < 2_000_000


def test_zstd_frames_of_every_form_are_read() -> None:
    """With and without a declared size, several in a row, and frames that readers skip."""
    stream = cramjam.zstd.Compressor(level=3)
    stream.compress(TEXT)
    without_size = bytes(stream.finish())
    skipped = b"\x5f\x2a\x4d\x18" + (3).to_bytes(4, "little") + b"abc"
    data = skipped + without_size + bytes(compress(CompressionType.ZSTD, b"x")) + skipped
    assert decompress(CompressionType.ZSTD, data) == TEXT + b"x"
    zeros = bytes(1 << 22)
    assert decompress(CompressionType.ZSTD, compress(CompressionType.ZSTD, zeros)) == zeros


@pytest.mark.parametrize("length", [0, -1, 1 << 20])
def test_a_snappy_block_with_an_invalid_length_is_refused(length: int) -> None:
    block = XERIAL_MAGIC + bytes(8) + length.to_bytes(4, "big", signed=True) + b"ab"
    with pytest.raises(BatchError, match=f"claims {length} bytes"):
        decompress(CompressionType.SNAPPY, block)


@pytest.mark.parametrize("number", [5, 6, 7])
def test_an_unknown_codec_is_refused(number: int) -> None:
    with pytest.raises(BatchError, match=f"codec {number}"):
        CompressionType.for_id(number)

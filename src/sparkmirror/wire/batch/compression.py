"""Compression of record batches, as Kafka's clients write and read it.

    gzip     one stream; several in a row are read, too
    snappy   two formats: blocks behind the xerial header (Java), or one raw block (librdkafka).
             Both are read; xerial is written, which every client reads
    lz4      frames. Kafka refuses frames with linked blocks (they occur only beyond 64 KB), so
             blocks are written independent
    zstd     frames

The decompressed size is unknown, and a damaged or malicious batch must not exhaust the memory:
every reader stops at a limit, and reserves no more than its input can become. Errors of the
libraries become BatchError here. Only this module imports the codec library.
"""

from __future__ import annotations

import enum
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import TypeAlias

import cramjam

from sparkmirror.errors import BatchError
from sparkmirror.wire.batch.header import BytesLike

MAX_DECOMPRESSED_BYTES = 1 << 28
"""The most bytes of a decompressed batch. A larger one is damaged or malicious."""

GZIP_LEVEL = 6
ZSTD_LEVEL = 3
LZ4_LEVEL = 1
"""The levels of Kafka's own producers."""

XERIAL_MAGIC = b"\x82SNAPPY\0"
_XERIAL_HEADER = struct.Struct(">8sii")
_XERIAL_VERSION = 1
_XERIAL_BLOCK = 1 << 15
_BLOCK_LENGTH = struct.Struct(">i")
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_INITIAL_OUTPUT_BYTES = 1 << 16
_LZ4_MAX_RATIO = 255
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE_MAGIC = b"\x2a\x4d\x18"
_ZSTD_MAX_BLOCK = 1 << 17
_ZSTD_DICTIONARY_ID_BYTES = (0, 1, 2, 4)
_ZSTD_CONTENT_SIZE_BYTES = (0, 2, 4, 8)
_ZSTD_RLE, _ZSTD_RESERVED = 1, 3

_Decompressor: TypeAlias = Callable[[BytesLike, int], BytesLike]


class CompressionType(enum.IntEnum):
    """The compression of a batch, by the number in its header."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @property
    def config_name(self) -> str:
        """The name that `compression.type` uses."""
        return self.name.lower()

    @classmethod
    def for_id(cls, number: int) -> CompressionType:
        """Return the codec of a number. Raises BatchError for an unknown one."""
        try:
            return cls(number)
        except ValueError:
            raise BatchError(
                f"a batch is compressed with codec {number}, which this program does not know and"
                " so cannot open; upgrade it before copying the partition further"
            ) from None


def decompress(
    codec: CompressionType, data: BytesLike, limit: int = MAX_DECOMPRESSED_BYTES
) -> bytes:
    """Decompress the records of a batch, to at most `limit` bytes. Raises BatchError."""
    try:
        inflated = _DECOMPRESSORS[codec](data, limit)
    except (cramjam.DecompressionError, zlib.error, struct.error) as error:
        raise BatchError(
            f"{len(data)} bytes of {codec.config_name} do not inflate to at most {limit} bytes:"
            f" {error};"
            " stop copying the partition and check the batch at the source"
        ) from error
    return bytes(inflated)


def compress(codec: CompressionType, data: BytesLike) -> BytesLike:
    """Compress the records of a batch in a format that every Kafka client and broker reads."""
    match codec:
        case CompressionType.NONE:
            return data
        case CompressionType.GZIP:
            return zlib.compress(data, GZIP_LEVEL, _GZIP_WINDOW)
        case CompressionType.SNAPPY:
            return b"".join(_xerial_blocks(memoryview(data)))
        case CompressionType.LZ4:
            frame = cramjam.lz4.Compressor(
                level=LZ4_LEVEL, content_checksum=False, block_linked=False
            )
            frame.compress(bytes(data))
            return memoryview(frame.finish())
        case CompressionType.ZSTD:
            return memoryview(cramjam.zstd.compress(data, level=ZSTD_LEVEL))


def _too_large_error(limit: int) -> BatchError:
    return BatchError(
        f"a batch inflates to more than {limit} bytes, which no producer means to send; look at it"
        " at the source, or raise the limit"
    )


def _copy_uncompressed(data: BytesLike, limit: int) -> BytesLike:
    if len(data) > limit:
        raise _too_large_error(limit)
    return data


def _decompress_gzip(data: BytesLike, limit: int) -> BytesLike:
    out = bytearray()
    rest: BytesLike = data
    while rest:
        stream = zlib.decompressobj(_GZIP_WINDOW)
        out += stream.decompress(rest, limit + 1 - len(out))
        if len(out) > limit:
            raise _too_large_error(limit)
        if not stream.eof:
            raise zlib.error("the stream ends early")
        rest = stream.unused_data
    return out


def _decompress_snappy(data: BytesLike, limit: int) -> BytesLike:
    view = memoryview(data)
    if view[: len(XERIAL_MAGIC)] != XERIAL_MAGIC:
        if cramjam.snappy.decompress_raw_len(view) > limit:
            raise _too_large_error(limit)
        return memoryview(cramjam.snappy.decompress_raw(view))
    out = bytearray()
    at = _XERIAL_HEADER.size
    while at < len(view):
        (length,) = _BLOCK_LENGTH.unpack_from(view, at)
        at += _BLOCK_LENGTH.size
        if not 0 < length <= len(view) - at:
            raise BatchError(
                f"a snappy block claims {length} bytes where {len(view) - at} are left; stop"
                " copying the partition and check it at the source"
            )
        block = view[at : at + length]
        if len(out) + cramjam.snappy.decompress_raw_len(block) > limit:
            raise _too_large_error(limit)
        out += memoryview(cramjam.snappy.decompress_raw(block))
        at += length
    return out


def _xerial_blocks(data: memoryview) -> Iterator[BytesLike]:
    yield _XERIAL_HEADER.pack(XERIAL_MAGIC, _XERIAL_VERSION, _XERIAL_VERSION)
    for at in range(0, len(data), _XERIAL_BLOCK):
        block = memoryview(cramjam.snappy.compress_raw(data[at : at + _XERIAL_BLOCK]))
        yield _BLOCK_LENGTH.pack(len(block))
        yield block


def _max_lz4_size(data: BytesLike) -> int:
    """Return the most bytes that data of this length can become."""
    return _LZ4_MAX_RATIO * len(data) + _INITIAL_OUTPUT_BYTES


def _max_zstd_size(data: BytesLike) -> int:
    """Return the most bytes that the blocks of all frames can become.

    Raises DecompressionError if the frames are not complete.
    """
    view = memoryview(data)
    at = blocks = 0
    while at < len(view):
        magic = bytes(view[at : at + 4])
        if magic[1:] == _ZSTD_SKIPPABLE_MAGIC and magic[0] >> 4 == 5:
            at += 8 + int.from_bytes(view[at + 4 : at + 8], "little")
            continue
        if magic != _ZSTD_MAGIC or at + 4 >= len(view):
            raise cramjam.DecompressionError("a frame has no valid beginning")
        descriptor = view[at + 4]
        is_single_segment = descriptor >> 5 & 1
        at += 5 + (1 - is_single_segment) + _ZSTD_DICTIONARY_ID_BYTES[descriptor & 3]
        at += _ZSTD_CONTENT_SIZE_BYTES[descriptor >> 6] or is_single_segment
        is_last = 0
        while not is_last:
            header = int.from_bytes(view[at : at + 3], "little")
            is_last, kind, size = header & 1, header >> 1 & 3, header >> 3
            at += 3 + (1 if kind == _ZSTD_RLE else size)
            blocks += 1
            if at > len(view) or kind == _ZSTD_RESERVED:
                raise cramjam.DecompressionError("a frame ends early")
        at += 4 * (descriptor >> 2 & 1)
    if at > len(view):
        raise cramjam.DecompressionError("a frame ends early")
    return blocks * _ZSTD_MAX_BLOCK


def _decompress_growing(
    decompress_into: Callable[[BytesLike, bytearray], int], max_size: Callable[[BytesLike], int]
) -> _Decompressor:
    """Decompress into a buffer of fixed size, then into larger ones.

    The library has no limit, but it never writes past the end of a buffer. Its errors do not tell a
    short buffer from bad data, so bad data is retried too, with at most the size that the data can
    become.
    """

    def decompress_growing(data: BytesLike, limit: int) -> BytesLike:
        largest = min(limit, max_size(data))
        size = min(largest, max(_INITIAL_OUTPUT_BYTES, 4 * len(data)))
        while True:
            out = bytearray(size)
            try:
                return memoryview(out)[: decompress_into(data, out)]
            except cramjam.DecompressionError:
                if size == largest:
                    raise
                size = min(largest, 4 * size)

    return decompress_growing


_DECOMPRESSORS: dict[CompressionType, _Decompressor] = {
    CompressionType.NONE: _copy_uncompressed,
    CompressionType.GZIP: _decompress_gzip,
    CompressionType.SNAPPY: _decompress_snappy,
    CompressionType.LZ4: _decompress_growing(cramjam.lz4.decompress_into, _max_lz4_size),
    CompressionType.ZSTD: _decompress_growing(cramjam.zstd.decompress_into, _max_zstd_size),
}

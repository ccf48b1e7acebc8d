"""Compression of record batches, as Kafka's clients write and read it.

    gzip     one stream; several in a row are read, too
    snappy   two formats: blocks behind the xerial header (Java), or one raw block (librdkafka).
             Both are read; xerial is written, which every client reads
    lz4      frames. Kafka refuses frames with linked blocks (they occur only beyond 64 KB), so
             blocks are written independent
    zstd     frames

The decompressed size is unknown, and a damaged or malicious batch must not exhaust the memory:
every reader stops at a limit. Errors of the libraries become BatchError here. Only this module
imports the codec library.
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


def _decompress_growing(decompress_into: Callable[[BytesLike, bytearray], int]) -> _Decompressor:
    """Decompress into a buffer of fixed size, then into larger ones, up to the limit.

    The library has no limit, but it never writes past the end of a buffer. Its errors do not tell a
    short buffer from bad data, so bad data is retried, too.
    """

    def decompress_growing(data: BytesLike, limit: int) -> BytesLike:
        size = min(limit, max(_INITIAL_OUTPUT_BYTES, 4 * len(data)))
        while True:
            out = bytearray(size)
            try:
                return memoryview(out)[: decompress_into(data, out)]
            except cramjam.DecompressionError:
                if size == limit:
                    raise
                size = min(limit, 4 * size)

    return decompress_growing


_DECOMPRESSORS: dict[CompressionType, _Decompressor] = {
    CompressionType.NONE: _copy_uncompressed,
    CompressionType.GZIP: _decompress_gzip,
    CompressionType.SNAPPY: _decompress_snappy,
    CompressionType.LZ4: _decompress_growing(cramjam.lz4.decompress_into),
    CompressionType.ZSTD: _decompress_growing(cramjam.zstd.decompress_into),
}

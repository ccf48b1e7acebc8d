"""Compression of record batches: what Kafka's clients write, and what Kafka's readers take.

    gzip     one stream; several in a row are read too
    snappy   two framings in the wild: blocks behind the xerial header (Java), or one raw block
             (librdkafka). Both are read, xerial is written, which every client understands
    lz4      frames. Kafka refuses frames whose blocks lean on each other (which shows only beyond
             64 KB), so blocks are written independent
    zstd     frames

Nobody says how large a batch becomes when inflated, and a damaged or hostile one must not take the
process with it: every reader stops at a bound. Errors of the libraries become BatchError here and
nowhere else. The one importer of the codec library.
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
"""Bytes that a batch may inflate to before it is taken for damaged or hostile."""

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
    """How the records of a batch are compressed, by the number that the header carries."""

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
        """Find the codec of a number, or refuse one from the future."""
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
    """Inflate the records of a batch, to at most `limit` bytes."""
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
    """Deflate the records of a batch so that every Kafka client and broker can read them."""
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
    """Inflate into a buffer of fixed size, then into larger ones, up to the limit.

    The library cannot be told a bound, but it never writes past the end of a buffer. It does not
    say in a stable way whether the room was short or the data bad, so bad data is tried again too.
    """

    def inflate(data: BytesLike, limit: int) -> BytesLike:
        room = min(limit, max(_INITIAL_OUTPUT_BYTES, 4 * len(data)))
        while True:
            out = bytearray(room)
            try:
                return memoryview(out)[: decompress_into(data, out)]
            except cramjam.DecompressionError:
                if room == limit:
                    raise
                room = min(limit, 4 * room)

    return inflate


_DECOMPRESSORS: dict[CompressionType, _Decompressor] = {
    CompressionType.NONE: _copy_uncompressed,
    CompressionType.GZIP: _decompress_gzip,
    CompressionType.SNAPPY: _decompress_snappy,
    CompressionType.LZ4: _decompress_growing(cramjam.lz4.decompress_into),
    CompressionType.ZSTD: _decompress_growing(cramjam.zstd.decompress_into),
}

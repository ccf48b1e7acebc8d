"""The header checksum of LZ4 frames in messages of magic 0."""

from __future__ import annotations

import cramjam
import pytest

from sparkmirror.errors import BatchError
from sparkmirror.wire.batch.message_format_v1 import fix_header_checksum, xxh32


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"", 0x02CC5D05),
        (b"a", 0x550D7456),
        (b"abc", 0x32D153FF),
        (b"abcd", 0xA3643705),
        (b"message digest", 0x7C948494),
    ],
)
def test_xxhash_gives_the_published_test_values(data: bytes, value: int) -> None:
    assert xxh32(data) == value


def test_only_short_inputs_are_hashed() -> None:
    with pytest.raises(ValueError, match="short"):
        xxh32(bytes(16))


def test_a_correct_frame_is_not_changed() -> None:
    frame = bytes(cramjam.lz4.compress(b"some text " * 100))
    assert fix_header_checksum(frame) == frame


def test_a_wrong_header_checksum_is_corrected() -> None:
    frame = bytes(cramjam.lz4.compress(b"some text " * 100))
    wrong = bytearray(frame)
    wrong[6] ^= 0x55
    assert fix_header_checksum(wrong) == frame


def test_optional_fields_of_the_header_move_the_checksum() -> None:
    flags, content_size = 0x68, (1000).to_bytes(8, "little")
    front = b"\x04\x22\x4d\x18" + bytes((flags, 0x40)) + content_size
    right = fix_header_checksum(front + b"\0" + b"rest")
    assert right[:14] == front
    assert right[14] == xxh32(front[4:]) >> 8 & 0xFF
    assert right[15:] == b"rest"


def test_a_frame_shorter_than_its_header_is_refused() -> None:
    with pytest.raises(BatchError, match="too short for its header"):
        fix_header_checksum(b"\x04\x22\x4d\x18")

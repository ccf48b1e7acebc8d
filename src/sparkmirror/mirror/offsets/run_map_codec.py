"""The binary encoding of run maps.

    version     1 byte, 1
    runs        varint
    coarse      varint
    known from  varint, plus one; 0 if the map is empty
    per run     varint source gap, varint target gap, varint length
    checksum    CRC-32 of the bytes before, 4 bytes, big-endian

A gap is the distance from the end of the run before (from 0 for the first run). It is never
negative and usually fits in one byte. Varints are little-endian groups of seven bits.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from sparkmirror.errors import RecordError, RunMapConflict
from sparkmirror.mirror.offsets.run_map import OffsetRun, RunMap

RUN_MAP_VERSION = 1
_CHECKSUM_BYTES = 4
_HEADER_FIELDS = 3


def encode_run_map(run_map: RunMap) -> bytes:
    """Encode a run map."""
    out = bytearray([RUN_MAP_VERSION])
    _write_varint(out, len(run_map))
    _write_varint(out, run_map.coarse_runs)
    _write_varint(out, 0 if run_map.known_from is None else run_map.known_from + 1)
    source_end = target_end = 0
    for source_first, target_first, length in run_map:
        _write_varint(out, source_first - source_end)
        _write_varint(out, target_first - target_end)
        _write_varint(out, length)
        source_end, target_end = source_first + length, target_first + length
    return bytes(out) + zlib.crc32(out).to_bytes(_CHECKSUM_BYTES, "big")


def decode_run_map(data: bytes) -> RunMap:
    """Decode a run map. Raises RecordError."""
    body, checksum = data[:-_CHECKSUM_BYTES], data[-_CHECKSUM_BYTES:]
    if not body or zlib.crc32(body).to_bytes(_CHECKSUM_BYTES, "big") != checksum:
        raise RecordError("A run map is damaged: its checksum does not match")
    if body[0] != RUN_MAP_VERSION:
        raise RecordError(f"Version {body[0]} of a run map is not supported: upgrade, or reset it")
    numbers = _read_varints(body[1:])
    if len(numbers) < _HEADER_FIELDS or len(numbers) != _HEADER_FIELDS + 3 * numbers[0]:
        raise RecordError("A run map is damaged: its number of runs is wrong")
    known_from = numbers[2] - 1 if numbers[2] else None
    try:
        return RunMap.restore(
            _decode_runs(numbers[_HEADER_FIELDS:]), known_from, coarse_runs=numbers[1]
        )
    except RunMapConflict as error:
        raise RecordError(f"A run map is inconsistent: {error}") from error


def _write_varint(out: bytearray, number: int) -> None:
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


def _read_varints(body: bytes) -> list[int]:
    numbers = []
    number = shift = 0
    for byte in body:
        number |= (byte & 0x7F) << shift
        if byte & 0x80:
            shift += 7
        else:
            numbers.append(number)
            number = shift = 0
    if shift:
        raise RecordError("A run map is damaged: it ends in the middle of a number")
    return numbers


def _decode_runs(numbers: list[int]) -> Iterator[OffsetRun]:
    source_end = target_end = 0
    for source_gap, target_gap, length in zip(*[iter(numbers)] * 3, strict=True):
        run = OffsetRun(source_end + source_gap, target_end + target_gap, length)
        source_end, target_end = run.source_first + length, run.target_first + length
        yield run

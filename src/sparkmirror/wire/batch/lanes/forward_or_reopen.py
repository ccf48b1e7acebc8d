"""The lane of a batch: the cheapest way to copy it that is correct.

    forward   the header is changed, the records stay compressed
    reopen    the batch is decompressed, renumbered, retimed, split or recompressed
    upgrade   messages of magic 0 or 1 become a batch of magic 2, which then takes a lane
    transform the records are read, changed or dropped by a connector's transformations, and written
    skip      the batch is not copied; the position moves past it

`choose_lane` is a pure function, called once for each fetched batch in log order. It returns the
reason, which has the lane: reasons are counted per topic and shown to the operator.
"""

from __future__ import annotations

from typing import Final

from sparkmirror.errors import BatchError
from sparkmirror.wire.batch.header import (
    COMPRESSION_CODEC_MASK,
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAGIC,
    TRANSACTIONAL,
    BatchHeader,
)
from sparkmirror.wire.batch.lanes.lane_reason import LaneReason
from sparkmirror.wire.batch.target_limits import TargetLimits

_UNCOMMON_ATTRIBUTES: Final = ~(COMPRESSION_CODEC_MASK | TRANSACTIONAL)
"""Attributes that need the slow path, including those unknown today."""


def choose_lane(
    header: BatchHeader, position: int, aborted: bool, target: TargetLimits
) -> LaneReason:
    """Choose the lane of a batch.

    `position` is the next source offset to copy. `aborted` is the result of the read_committed
    filter; false for read_uncommitted.
    """
    if header.magic < MAGIC:
        return LaneReason.OLD_MESSAGE_FORMAT
    if _is_ordinary(header, position, target) and not aborted:
        return LaneReason.PLAIN
    return (
        _skip_reason(header, position, aborted)
        or _reopen_reason(header, position, target)
        or _forward_reason(header)
    )


def _is_ordinary(header: BatchHeader, position: int, target: TargetLimits) -> bool:
    """Whether a batch needs no further check: true for nearly every batch."""
    attributes = header.attributes
    return (
        not attributes & _UNCOMMON_ATTRIBUTES
        and header.record_count == header.last_offset_delta + 1 > 0
        and header.base_offset >= position
        and header.length + LOG_OVERHEAD <= target.max_batch_bytes
        and attributes & COMPRESSION_CODEC_MASK in target.codecs
    )


def _skip_reason(header: BatchHeader, position: int, aborted: bool) -> LaneReason | None:
    if header.base_offset + header.last_offset_delta < position:
        if header.last_offset_delta < 0:
            raise BatchError(
                f"the batch at offset {header.base_offset} ends before it begins; stop copying the"
                " partition and check it at the source"
            )
        return LaneReason.ALREADY_COPIED
    if header.attributes & CONTROL:
        return LaneReason.CONTROL
    if header.record_count == 0:
        return LaneReason.EMPTIED
    return LaneReason.ABORTED_TRANSACTION if aborted else None


def _reopen_reason(header: BatchHeader, position: int, target: TargetLimits) -> LaneReason | None:
    if header.base_offset < position:
        return LaneReason.STARTS_BEFORE_POSITION
    if header.record_count != header.last_offset_delta + 1:
        return LaneReason.COMPACTED
    if header.attributes & LOG_APPEND_TIME and not target.log_append_time:
        return LaneReason.LOG_APPEND_TIME
    if header.size > target.max_batch_bytes:
        return LaneReason.TOO_LARGE
    if header.attributes & COMPRESSION_CODEC_MASK not in target.codecs:
        return LaneReason.UNSUPPORTED_CODEC
    return None


def _forward_reason(header: BatchHeader) -> LaneReason:
    if header.attributes & LOG_APPEND_TIME:
        return LaneReason.RESTAMPED
    if header.attributes & DELETE_HORIZON:
        return LaneReason.DELETE_HORIZON_CLEARED
    return LaneReason.PLAIN

"""The lane of a batch: the cheapest way to the target that is correct for it.

    forward   its header is patched, its records stay closed
    reopen    it is decompressed, renumbered, retimed, split or recompressed
    upgrade   messages of magic 0 or 1 become a batch first, which then takes a lane of its own
    rows      its records are taken out one by one and changed on the way
    skip      nothing of it belongs on the target; the position moves past it all the same

One pure function, asked once for each fetched batch, in log order. Its answer is the reason, which
names the lane: reasons are counted per topic and shown to the operator.
"""

from __future__ import annotations

import enum

from sparkmirror.errors import BatchError
from sparkmirror.wire.header import (
    BEFORE_LENGTH,
    CODEC_BITS,
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    MAGIC,
    TRANSACTIONAL,
    Header,
)
from sparkmirror.wire.target import Target

_SPECIAL = ~(CODEC_BITS | TRANSACTIONAL)
"""Attributes that need a second look, those unknown today among them."""


class Lane(enum.Enum):
    """How a batch gets to the target."""

    FORWARD = "forward"
    REOPEN = "reopen"
    UPGRADE = "upgrade"
    ROWS = "rows"
    SKIP = "skip"


class Reason(enum.Enum):
    """Why a batch takes its lane; the value is the name that operators see."""

    PLAIN = "plain", Lane.FORWARD
    HORIZON_CLEARED = "delete-horizon-cleared", Lane.FORWARD
    RESTAMPED = "restamped-by-target", Lane.FORWARD
    MERGED = "small-batches-merged", Lane.REOPEN
    HEAD = "starts-before-position", Lane.REOPEN
    GAPS = "compacted", Lane.REOPEN
    TIME_BAKED = "log-append-time", Lane.REOPEN
    TOO_LARGE = "larger-than-target-allows", Lane.REOPEN
    CODEC = "codec-unknown-to-target", Lane.REOPEN
    TRANSFORMS = "transforms", Lane.ROWS
    LEGACY = "old-message-format", Lane.UPGRADE
    PAST = "already-copied", Lane.SKIP
    CONTROL = "control", Lane.SKIP
    EMPTY = "emptied-by-compaction", Lane.SKIP
    ABORTED = "aborted-transaction", Lane.SKIP

    lane: Lane

    def __new__(cls, label: str, lane: Lane) -> Reason:
        """Keep the lane beside the label."""
        reason = object.__new__(cls)
        reason._value_ = label
        reason.lane = lane
        return reason


def choose(header: Header, position: int, aborted: bool, target: Target) -> Reason:
    """Choose the lane of a batch.

    `position` is the source offset to copy next; `aborted` is the answer of the read_committed
    filter, false when everything is to be read.
    """
    if header.magic < MAGIC:
        return Reason.LEGACY
    if _is_ordinary(header, position, target) and not aborted:
        return Reason.PLAIN
    return (
        _to_skip(header, position, aborted)
        or _to_open(header, position, target)
        or _to_forward(header)
    )


def _is_ordinary(header: Header, position: int, target: Target) -> bool:
    """Whether nothing at all is special about a batch: the answer for nearly every one, at once."""
    attributes = header.attributes
    return (
        not attributes & _SPECIAL
        and header.record_count == header.last_offset_delta + 1 > 0
        and header.base_offset >= position
        and header.length + BEFORE_LENGTH <= target.max_message_bytes
        and attributes & CODEC_BITS in target.codecs
        and not target.transforms
    )


def _to_skip(header: Header, position: int, aborted: bool) -> Reason | None:
    if header.base_offset + header.last_offset_delta < position:
        if header.last_offset_delta < 0:
            raise BatchError(
                f"the batch at offset {header.base_offset} ends before it begins; stop copying the"
                " partition and check it at the source"
            )
        return Reason.PAST
    if header.attributes & CONTROL:
        return Reason.CONTROL
    if header.record_count == 0:
        return Reason.EMPTY
    return Reason.ABORTED if aborted else None


def _to_open(header: Header, position: int, target: Target) -> Reason | None:
    if target.transforms:
        return Reason.TRANSFORMS
    if header.base_offset < position:
        return Reason.HEAD
    if header.record_count != header.last_offset_delta + 1:
        return Reason.GAPS
    if header.attributes & LOG_APPEND_TIME and not target.log_append_time:
        return Reason.TIME_BAKED
    if header.size > target.max_message_bytes:
        return Reason.TOO_LARGE
    if header.attributes & CODEC_BITS not in target.codecs:
        return Reason.CODEC
    return None


def _to_forward(header: Header) -> Reason:
    if header.attributes & LOG_APPEND_TIME:
        return Reason.RESTAMPED
    if header.attributes & DELETE_HORIZON:
        return Reason.HORIZON_CLEARED
    return Reason.PLAIN

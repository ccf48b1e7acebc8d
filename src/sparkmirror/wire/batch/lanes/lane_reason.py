"""The lanes of record batches, and the reasons why a batch takes its lane. Counted by reason."""

from __future__ import annotations

import enum


class Lane(enum.Enum):
    """How a batch is copied."""

    FORWARD = "forward"
    REOPEN = "reopen"
    UPGRADE = "upgrade"
    TRANSFORM = "transform"
    SKIP = "skip"


class LaneReason(enum.Enum):
    """Why a batch takes its lane; the value is the name that operators see."""

    PLAIN = "plain", Lane.FORWARD
    DELETE_HORIZON_CLEARED = "delete-horizon-cleared", Lane.FORWARD
    RESTAMPED = "restamped-by-target", Lane.FORWARD
    MERGED = "small-batches-merged", Lane.REOPEN
    STARTS_BEFORE_POSITION = "starts-before-position", Lane.REOPEN
    COMPACTED = "compacted", Lane.REOPEN
    LOG_APPEND_TIME = "log-append-time", Lane.REOPEN
    TOO_LARGE = "larger-than-target-allows", Lane.REOPEN
    UNSUPPORTED_CODEC = "codec-unknown-to-target", Lane.REOPEN
    OLD_MESSAGE_FORMAT = "old-message-format", Lane.UPGRADE
    TRANSFORMED = "transformed", Lane.TRANSFORM
    ALREADY_COPIED = "already-copied", Lane.SKIP
    CONTROL = "control", Lane.SKIP
    EMPTIED = "emptied-by-compaction", Lane.SKIP
    ABORTED_TRANSACTION = "aborted-transaction", Lane.SKIP
    FILTERED = "filtered", Lane.SKIP

    lane: Lane

    def __new__(cls, label: str, lane: Lane) -> LaneReason:
        """Set the lane beside the label."""
        reason = object.__new__(cls)
        reason._value_ = label
        reason.lane = lane
        return reason

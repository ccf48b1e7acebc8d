"""What the driver does after a lease has ended and its partition is released. Pure.

a lease ended because              what follows
closed                             waiting: the next owner continues
out-of-range, source-gone,         held, then waiting with a new resume point; doubtful if the
target-gone                        last transaction is doubtful
refused, not-authorized            held; the limits of the remote topic are queried again
codec-refused                      waiting; later leases have another codec
topic-wanted                       waiting; the topic is created before the next grant
ambiguous, fenced                  waiting after a clean end, else doubtful
"""

from __future__ import annotations

import enum

from sparkmirror.copy.control.messages import LeaseEndReason


class LeaseEndAction(enum.Enum):
    """The rows of the table above."""

    NOTHING = enum.auto()
    REOPEN = enum.auto()
    """Hold it, then find a new resume point."""
    RETRY = enum.auto()
    """Query the target limits again, hold it, then keep its state."""


def lease_end_action(reason: LeaseEndReason, *, is_transaction_doubtful: bool) -> LeaseEndAction:
    """Decide by the table of this module."""
    match reason:
        case LeaseEndReason.OUT_OF_RANGE | LeaseEndReason.SOURCE_GONE | LeaseEndReason.TARGET_GONE:
            return LeaseEndAction.NOTHING if is_transaction_doubtful else LeaseEndAction.REOPEN
        case LeaseEndReason.REFUSED | LeaseEndReason.NOT_AUTHORIZED:
            return LeaseEndAction.RETRY
        case (
            LeaseEndReason.CLOSED
            | LeaseEndReason.AMBIGUOUS
            | LeaseEndReason.FENCED
            | LeaseEndReason.CODEC_REFUSED
            | LeaseEndReason.TOPIC_WANTED
        ):
            return LeaseEndAction.NOTHING

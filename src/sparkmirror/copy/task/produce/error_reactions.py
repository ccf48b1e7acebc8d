"""What a task does about an error code of a broker. Pure decisions: values in, a value out.

Produce                          reaction
the target did not append        resend after a backoff
another broker leads, or the     resend after a backoff and a check (`resend_checks`)
outcome is unknown               old data without a transaction ends the lease instead
a sequence does not fit          oldest batch: compare the target's log first
                                 later batch: resend behind the oldest one
the target lacks the codec       end the lease; the driver grants it with another codec
anything else                    end the lease

Without a producer id the target recognises no batch that it has. Where the outcome is unknown, the
lease ends, and the driver compares both logs.

Fetch                            reaction
offset, topic or right missing   end the lease when the queue is sent
anything else                    fetch again after a backoff
"""

from __future__ import annotations

import enum
from typing import NamedTuple

from sparkmirror.copy.control.messages import NO_CODEC, LeaseEndReason
from sparkmirror.copy.task.produce.pending_batch import PendingBatch
from sparkmirror.model import TopicPartition
from sparkmirror.wire.protocol.error_codes import ErrorAction, ErrorCode
from sparkmirror.wire.protocol.produce import PartitionProduceResponse

MAX_RESEND_AGE_MS = 12 * 3600 * 1000
"""A broker forgets the producer of data older than a day. Half of that is a safe limit."""

NOT_APPENDED = frozenset(
    {
        *(ErrorAction.BACK_OFF, ErrorAction.SEQUENCE, ErrorAction.CONTENT, ErrorAction.FENCED),
        *(ErrorAction.TOPIC_GONE, ErrorAction.NOT_AUTHORIZED, ErrorAction.COORDINATOR),
    }
)
"""Errors that a broker returns before it appends anything. A broker that is no longer the leader is
not among them: it may have appended, and the new leader may have the batch."""

_UNKNOWN_OUTCOME = frozenset({ErrorAction.REFRESH, ErrorAction.AMBIGUOUS, ErrorAction.SEQUENCE})
"""Errors after which only a producer id makes a resend safe."""


class LeaseEnd(NamedTuple):
    """Why a lease ends."""

    reason: LeaseEndReason
    message: str
    refused_codec: int = NO_CODEC


class ProduceReaction(enum.Enum):
    """What the sender does about a batch that the target answered with an error."""

    FAIL_TRANSACTION = "fail the transaction"
    RESEND = "resend after a backoff: the target did not append"
    RESEND_IF_SAFE = "resend after a backoff and a check: the old leader may have appended"
    RESEND_IF_RECENT = "as RESEND_IF_SAFE, but old data ends the lease: the outcome is unknown"
    CHECK_SEQUENCE = "compare the target's log before anything is sent"
    RESEND_IN_ORDER = "resend without a backoff: an older batch failed"
    WAIT_FOR_CHECK = "do nothing: a sequence check is pending"
    COMPARE_LOGS = "end the lease: the outcome is unknown, and a resend could append twice"
    END_LEASE = "end the lease"


def react_to_produce_error(
    action: ErrorAction,
    *,
    in_transaction: bool,
    can_send: bool,
    is_oldest: bool,
    is_check_pending: bool,
    is_idempotent: bool = True,
) -> ProduceReaction:
    """Return the reaction to a produce error.

    `can_send` is whether the partition may still send, `is_oldest` whether the batch is its oldest
    one in flight, `is_check_pending` whether a sequence check was already requested,
    `is_idempotent` whether the target recognises batches that it has.
    """
    if in_transaction and _fails_transaction(action, can_send=can_send, is_oldest=is_oldest):
        return ProduceReaction.FAIL_TRANSACTION
    if not is_idempotent and action in _UNKNOWN_OUTCOME:
        return ProduceReaction.COMPARE_LOGS
    match action:
        case ErrorAction.REFRESH:
            return ProduceReaction.RESEND_IF_SAFE
        case ErrorAction.COORDINATOR | ErrorAction.BACK_OFF:
            return ProduceReaction.RESEND
        case ErrorAction.AMBIGUOUS:
            return ProduceReaction.RESEND_IF_RECENT
        case ErrorAction.SEQUENCE if is_oldest:
            return ProduceReaction.CHECK_SEQUENCE
        case ErrorAction.SEQUENCE if is_check_pending:
            return ProduceReaction.WAIT_FOR_CHECK
        case ErrorAction.SEQUENCE:
            return ProduceReaction.RESEND_IN_ORDER
        case _:
            return ProduceReaction.END_LEASE


def _fails_transaction(action: ErrorAction, *, can_send: bool, is_oldest: bool) -> bool:
    if action is ErrorAction.SEQUENCE:
        return can_send and is_oldest
    return action in (ErrorAction.FENCED, ErrorAction.TRANSACTION)


def is_too_old_to_resend(
    oldest_timestamp_ms: int | None, now_ms: int, *, in_transaction: bool
) -> bool:
    """Whether the target may have forgotten the producer of the oldest batch in flight.

    A broker remembers the producer of an open transaction, so in a transaction no data is too old.
    """
    if in_transaction or oldest_timestamp_ms is None:
        return False
    return oldest_timestamp_ms < now_ms - MAX_RESEND_AGE_MS


def lease_end_for_produce_error(
    target: TopicPartition, batch: PendingBatch, response: PartitionProduceResponse
) -> LeaseEnd:
    """Return why the lease ends after a produce error that a resend cannot repair."""
    code = ErrorCode(response.error_code)
    match code.action:
        case ErrorAction.FENCED:
            return LeaseEnd(LeaseEndReason.FENCED, f"another owner has taken over {target}: {code}")
        case ErrorAction.TOPIC_GONE:
            return LeaseEnd(
                LeaseEndReason.TARGET_GONE, f"the remote topic {target.topic} is gone: {code}"
            )
        case ErrorAction.NOT_AUTHORIZED:
            return LeaseEnd(
                LeaseEndReason.NOT_AUTHORIZED,
                f"the target refuses to let {target.topic} be written: {code};"
                " grant Write on the topic",
            )
        case _ if code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE and batch.header.codec_id:
            text = _rejection_text(batch, response, code)
            return LeaseEnd(LeaseEndReason.CODEC_REFUSED, text, batch.header.codec_id)
        case _:
            return LeaseEnd(LeaseEndReason.REFUSED, _rejection_text(batch, response, code))


def _rejection_text(
    batch: PendingBatch, response: PartitionProduceResponse, code: ErrorCode
) -> str:
    detail = response.error_message or "; ".join(
        f"record {record.batch_index}: {record.message}" for record in response.record_errors[:3]
    )
    first, _ = batch.spans[0]
    last, length = batch.spans[-1]
    return (
        f"the target refuses source offsets {first} to {last + length - 1}: {code}"
        f"{': ' + detail if detail else ''}"
    )


def lease_end_for_fetch_error(
    source: TopicPartition, offset: int, code: ErrorCode
) -> LeaseEnd | None:
    """Return why the lease ends after a fetch error; None if the task must fetch again later."""
    match code.action:
        case ErrorAction.OFFSET:
            return LeaseEnd(
                LeaseEndReason.OUT_OF_RANGE, f"the source's log does not hold offset {offset}"
            )
        case ErrorAction.TOPIC_GONE:
            return LeaseEnd(
                LeaseEndReason.SOURCE_GONE, f"the source topic {source.topic} is gone: {code}"
            )
        case ErrorAction.NOT_AUTHORIZED:
            return LeaseEnd(
                LeaseEndReason.NOT_AUTHORIZED,
                f"the source refuses to let {source.topic} be read: {code};"
                " grant Read on the topic",
            )
        case _:
            return None

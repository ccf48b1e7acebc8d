"""What a task does about each error code: one row per rule."""

from __future__ import annotations

import pytest

from sparkmirror.copy.control.messages import LeaseEndReason
from sparkmirror.copy.task.produce.error_reactions import (
    MAX_RESEND_AGE_MS,
    NOT_APPENDED,
    ProduceReaction,
    is_too_old_to_resend,
    lease_end_for_fetch_error,
    lease_end_for_produce_error,
    react_to_produce_error,
)
from sparkmirror.copy.task.produce.pending_batch import PendingBatch
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.header import read_header
from sparkmirror.wire.batch.records import Record, build_batch
from sparkmirror.wire.protocol.error_codes import ErrorAction, ErrorCode
from sparkmirror.wire.protocol.produce import PartitionProduceResponse

SOURCE = TopicPartition("orders", 3)
TARGET = TopicPartition("primary.orders", 3)
ANY = (False, True)


def react(
    action: ErrorAction,
    *,
    in_transaction: bool = False,
    can_send: bool = True,
    is_oldest: bool = True,
    is_check_pending: bool = False,
) -> ProduceReaction:
    return react_to_produce_error(
        action,
        in_transaction=in_transaction,
        can_send=can_send,
        is_oldest=is_oldest,
        is_check_pending=is_check_pending,
    )


@pytest.mark.parametrize(
    ("action", "reaction"),
    [
        (ErrorAction.REFRESH, ProduceReaction.RESEND_IF_SAFE),
        (ErrorAction.COORDINATOR, ProduceReaction.RESEND),
        (ErrorAction.BACK_OFF, ProduceReaction.RESEND),
        (ErrorAction.AMBIGUOUS, ProduceReaction.RESEND_IF_RECENT),
        (ErrorAction.TOPIC_GONE, ProduceReaction.END_LEASE),
        (ErrorAction.NOT_AUTHORIZED, ProduceReaction.END_LEASE),
        (ErrorAction.CONTENT, ProduceReaction.END_LEASE),
        (ErrorAction.OFFSET, ProduceReaction.END_LEASE),
        (ErrorAction.UNKNOWN, ProduceReaction.END_LEASE),
        (ErrorAction.NOT_ATTEMPTED, ProduceReaction.END_LEASE),
        (ErrorAction.FATAL, ProduceReaction.END_LEASE),
    ],
    ids=lambda value: value.name,
)
def test_most_errors_have_one_reaction(action: ErrorAction, reaction: ProduceReaction) -> None:
    reactions = {
        react_to_produce_error(
            action, in_transaction=a, can_send=b, is_oldest=c, is_check_pending=d
        )
        for a in ANY
        for b in ANY
        for c in ANY
        for d in ANY
    }
    assert reactions == {reaction}


@pytest.mark.parametrize(
    ("action", "in_transaction", "reaction"),
    [
        (ErrorAction.FENCED, False, ProduceReaction.END_LEASE),
        (ErrorAction.FENCED, True, ProduceReaction.FAIL_TRANSACTION),
        (ErrorAction.TRANSACTION, False, ProduceReaction.END_LEASE),
        (ErrorAction.TRANSACTION, True, ProduceReaction.FAIL_TRANSACTION),
    ],
)
def test_a_fence_or_a_broken_transaction_fails_the_transaction(
    action: ErrorAction, in_transaction: bool, reaction: ProduceReaction
) -> None:
    assert react(action, in_transaction=in_transaction) is reaction
    assert react(action, in_transaction=in_transaction, can_send=False) is reaction


@pytest.mark.parametrize(
    ("in_transaction", "can_send", "is_oldest", "is_check_pending", "reaction"),
    [
        (False, True, True, False, ProduceReaction.CHECK_SEQUENCE),
        (False, True, True, True, ProduceReaction.CHECK_SEQUENCE),
        (False, True, False, False, ProduceReaction.RESEND_IN_ORDER),
        (False, True, False, True, ProduceReaction.WAIT_FOR_CHECK),
        (True, True, True, False, ProduceReaction.FAIL_TRANSACTION),
        (True, False, True, False, ProduceReaction.CHECK_SEQUENCE),
        (True, True, False, False, ProduceReaction.RESEND_IN_ORDER),
    ],
)
def test_a_refused_sequence_is_checked_for_the_oldest_batch_only(
    in_transaction: bool,
    can_send: bool,
    is_oldest: bool,
    is_check_pending: bool,
    reaction: ProduceReaction,
) -> None:
    assert (
        react(
            ErrorAction.SEQUENCE,
            in_transaction=in_transaction,
            can_send=can_send,
            is_oldest=is_oldest,
            is_check_pending=is_check_pending,
        )
        is reaction
    )


@pytest.mark.parametrize("action", ErrorAction, ids=lambda action: action.name)
def test_without_a_producer_id_nothing_of_unknown_outcome_is_sent_again(
    action: ErrorAction,
) -> None:
    reaction = react_to_produce_error(
        action,
        in_transaction=False,
        can_send=True,
        is_oldest=True,
        is_check_pending=False,
        is_idempotent=False,
    )
    certain = {ProduceReaction.RESEND, ProduceReaction.END_LEASE}
    assert reaction in {ProduceReaction.COMPARE_LOGS, *certain}
    if reaction is ProduceReaction.RESEND:
        assert action in NOT_APPENDED


def test_a_leader_that_changed_and_an_unknown_outcome_may_have_appended() -> None:
    maybe_appended = {ErrorAction.REFRESH, ErrorAction.AMBIGUOUS, ErrorAction.UNKNOWN}
    assert not maybe_appended & NOT_APPENDED


@pytest.mark.parametrize(
    ("oldest_timestamp_ms", "in_transaction", "is_too_old"),
    [
        (None, False, False),
        (1, False, False),
        (0, False, True),
        (-1, False, True),
        (0, True, False),
    ],
    ids=["nothing-in-flight", "recent", "old", "without-timestamp", "in-transaction"],
)
def test_old_data_is_resent_in_a_transaction_only(
    oldest_timestamp_ms: int | None, in_transaction: bool, is_too_old: bool
) -> None:
    now_ms = MAX_RESEND_AGE_MS + 1
    assert is_too_old == is_too_old_to_resend(
        oldest_timestamp_ms, now_ms, in_transaction=in_transaction
    )


@pytest.mark.parametrize(
    ("code", "reason", "message"),
    [
        (ErrorCode.PRODUCER_FENCED, LeaseEndReason.FENCED, "another owner has taken over"),
        (ErrorCode.UNKNOWN_TOPIC_ID, LeaseEndReason.TARGET_GONE, "primary.orders is gone"),
        (
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            LeaseEndReason.NOT_AUTHORIZED,
            "grant Write on the topic",
        ),
        (ErrorCode.MESSAGE_TOO_LARGE, LeaseEndReason.REFUSED, "source offsets 100 to 102"),
        (ErrorCode.UNKNOWN_SERVER_ERROR, LeaseEndReason.REFUSED, "it broke"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_the_end_of_a_lease_after_a_produce_error(
    code: ErrorCode, reason: LeaseEndReason, message: str
) -> None:
    data = memoryview(build_batch([Record(100 + n, 1, None, b"v") for n in range(3)]))
    batch = PendingBatch(
        header=read_header(data),
        batch=data,
        spans=((100, 3),),
        next_source_offset=103,
        release=lambda: None,
    )
    response = PartitionProduceResponse(
        topic=TARGET.topic,
        partition=TARGET.partition,
        error_code=int(code),
        base_offset=-1,
        log_append_time_ms=-1,
        log_start_offset=-1,
        record_errors=[],
        error_message="it broke",
        current_leader=None,
    )
    end = lease_end_for_produce_error(TARGET, batch, response)
    assert end.reason is reason
    assert message in end.message


@pytest.mark.parametrize(
    ("codec", "reason"),
    [
        (CompressionType.LZ4, LeaseEndReason.CODEC_REFUSED),
        (CompressionType.NONE, LeaseEndReason.REFUSED),
    ],
)
def test_a_refused_codec_is_named_unless_there_is_none(
    codec: CompressionType, reason: LeaseEndReason
) -> None:
    data = memoryview(build_batch([Record(100, 1, None, b"v")], codec))
    batch = PendingBatch(
        header=read_header(data),
        batch=data,
        spans=((100, 1),),
        next_source_offset=101,
        release=lambda: None,
    )
    code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE.value
    response = PartitionProduceResponse(*TARGET, code, -1, -1, -1, [], None, None)
    end = lease_end_for_produce_error(TARGET, batch, response)
    assert (end.reason, end.refused_codec) == (reason, codec)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (ErrorCode.OFFSET_OUT_OF_RANGE, LeaseEndReason.OUT_OF_RANGE),
        (ErrorCode.UNKNOWN_TOPIC_ID, LeaseEndReason.SOURCE_GONE),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, LeaseEndReason.NOT_AUTHORIZED),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, None),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
        (ErrorCode.REQUEST_TIMED_OUT, None),
        (ErrorCode.UNKNOWN_SERVER_ERROR, None),
    ],
    ids=lambda value: getattr(value, "name", "fetch-again"),
)
def test_a_fetch_error_that_passes_by_itself_does_not_end_the_lease(
    code: ErrorCode, reason: LeaseEndReason | None
) -> None:
    end = lease_end_for_fetch_error(SOURCE, 42, code)
    assert (end.reason if end else None) is reason

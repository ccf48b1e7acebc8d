"""When batches without an answer may be sent again: the answers of the leader decide."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from sparkmirror.copy.task.produce.resend_checks import NO_ANSWER, UnacknowledgedSend, may_resend
from sparkmirror.wire.protocol.error_codes import ErrorCode

SENT = UnacknowledgedSend(producer_id=7, expected=50)
OK = ErrorCode.NONE


@pytest.mark.parametrize(
    ("code", "producers", "end_code", "end_offset", "decision"),
    [
        (OK, [7, 8], NO_ANSWER, None, True),
        (OK, [8], OK, 50, True),
        (OK, [8], OK, 53, False),
        (OK, [], OK, 40, False),
        (OK, [8], NO_ANSWER, None, None),
        (OK, [8], ErrorCode.NOT_LEADER_OR_FOLLOWER, None, None),
        (OK, [8], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None, True),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, None, NO_ANSWER, None, None),
        (ErrorCode.REQUEST_TIMED_OUT, None, NO_ANSWER, None, None),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None, NO_ANSWER, None, True),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, None, NO_ANSWER, None, True),
    ],
    ids=[
        "producer-known",
        "forgotten-and-log-ends-at-expected",
        "forgotten-and-log-is-longer",
        "forgotten-and-log-is-shorter",
        "forgotten-and-no-leader",
        "forgotten-and-leader-changed",
        "forgotten-and-topic-gone",
        "leader-changed",
        "timed-out",
        "topic-gone",
        "not-authorized",
    ],
)
def test_batches_are_sent_again_if_no_duplicate_is_possible_or_the_error_will_show(
    code: ErrorCode,
    producers: Collection[int] | None,
    end_code: ErrorCode,
    end_offset: int | None,
    decision: bool | None,
) -> None:
    assert may_resend(SENT, code, producers, end_code, end_offset) is decision

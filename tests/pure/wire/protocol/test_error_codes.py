"""Error codes have Kafka's names, and an action of the copy task."""

from __future__ import annotations

from typing import Any

import pytest
from kafka import errors as kafka_errors

from sparkmirror.errors import (
    ClusterError,
    ClusterTimeout,
    ClusterUnavailable,
    NotAuthorized,
    RequestRefused,
    TopicMissing,
)
from sparkmirror.wire.protocol.error_code_exceptions import error_for_code
from sparkmirror.wire.protocol.error_codes import ErrorAction, ErrorCode

ACTIONS = [
    (ErrorAction.ADVANCE, [0]),
    (ErrorAction.OFFSET, [1]),
    (ErrorAction.CONTENT, [2, 10, 18, 32, 43, 76, 87]),
    (ErrorAction.REFRESH, [3, 5, 6, 9, 56, 72, 74, 75, 78]),
    (ErrorAction.AMBIGUOUS, [7, 13, 20]),
    (ErrorAction.COORDINATOR, [14, 15, 16, 41, 51]),
    (ErrorAction.BACK_OFF, [19, 89]),
    (ErrorAction.SEQUENCE, [45, 46, 59]),
    (ErrorAction.FENCED, [47, 90]),
    (ErrorAction.TRANSACTION, [48, 49, 120]),
    (ErrorAction.NOT_ATTEMPTED, [55]),
    (ErrorAction.TOPIC_GONE, [100, 103]),
    (ErrorAction.NOT_AUTHORIZED, [29, 30, 31, 53, 58]),
    (ErrorAction.UNKNOWN, [-1]),
    (ErrorAction.FATAL, [17, 21, 35, 42, 50]),
]


@pytest.mark.parametrize(("action", "codes"), ACTIONS, ids=[a.name.lower() for a, _ in ACTIONS])
def test_each_code_has_its_action(action: ErrorAction, codes: list[int]) -> None:
    assert {ErrorCode(code).action for code in codes} == {action}


def test_every_number_has_one_name() -> None:
    known: dict[int | None, Any] = kafka_errors.kafka_errors
    assert {number for number in known if number is not None} <= set(ErrorCode)
    assert [code.value for code in ErrorCode] == list(range(-1, len(ErrorCode) - 1))


def test_an_unknown_code_keeps_its_number_and_is_fatal() -> None:
    code = ErrorCode(4711)
    assert code == 4711
    assert str(code) == f"{code}" == "CODE_4711 (4711)"
    assert code.action is ErrorAction.FATAL
    assert not code.is_retriable


def test_a_code_is_printed_as_name_and_number() -> None:
    assert f"{ErrorCode(6)}" == "NOT_LEADER_OR_FOLLOWER (6)"


@pytest.mark.parametrize("code", [5, 6, 7, 14, 16, 19, 51])
def test_a_temporary_error_is_retriable(code: int) -> None:
    assert ErrorCode(code).is_retriable


@pytest.mark.parametrize("code", [0, 1, 10, 29, 45, 47, 53, 87, 90, 100])
def test_other_errors_are_not_retriable(code: int) -> None:
    assert not ErrorCode(code).is_retriable


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (3, TopicMissing),
        (7, ClusterTimeout),
        (15, ClusterUnavailable),
        (29, NotAuthorized),
        (53, NotAuthorized),
        (42, RequestRefused),
        (90, RequestRefused),
    ],
)
def test_a_refused_request_becomes_the_error_for_its_code(
    code: int, kind: type[ClusterError]
) -> None:
    error = error_for_code("primary", "InitProducerId", ErrorCode(code), "because")
    assert type(error) is kind
    assert str(error).startswith(f"primary: InitProducerId answered {ErrorCode(code)}: because")


def test_a_refused_request_keeps_its_code() -> None:
    error = error_for_code("primary", "EndTxn", ErrorCode.PRODUCER_FENCED)
    assert isinstance(error, RequestRefused)
    assert ErrorCode(error.code).action is ErrorAction.FENCED


@pytest.mark.parametrize(
    ("api", "code", "advice"),
    [
        (
            "CreateTopics",
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            "grant Create on the cluster (kafka-acls --add --operation Create --cluster)",
        ),
        (
            "OffsetFetch",
            ErrorCode.GROUP_AUTHORIZATION_FAILED,
            "grant Describe on the group (kafka-acls --add --operation Describe --group)",
        ),
        (
            "InitProducerId",
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            "(kafka-acls --add --operation Write --transactional-id)",
        ),
        ("DescribeQuorum", ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "grant the right it needs"),
    ],
)
def test_a_missing_right_is_named_with_its_resource(api: str, code: ErrorCode, advice: str) -> None:
    assert str(error_for_code("primary", api, code)).endswith(advice)

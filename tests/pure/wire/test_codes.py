"""Error codes: Kafka's names, and the action the copy path takes on each."""

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
from sparkmirror.wire.codes import Action, Code
from sparkmirror.wire.place import refusal

ACTIONS = [
    (Action.ADVANCE, [0]),
    (Action.OFFSET, [1]),
    (Action.CONTENT, [2, 10, 18, 32, 43, 76, 87]),
    (Action.REFRESH, [3, 5, 6, 9, 56, 72, 74, 75, 78]),
    (Action.AMBIGUOUS, [7, 13, 20]),
    (Action.COORDINATOR, [14, 15, 16, 41, 51]),
    (Action.BACK_OFF, [19, 89]),
    (Action.SEQUENCE, [45, 46, 59]),
    (Action.FENCED, [47, 90]),
    (Action.TRANSACTION, [48, 49, 120]),
    (Action.NOT_ATTEMPTED, [55]),
    (Action.TOPIC_GONE, [100, 103]),
    (Action.NOT_AUTHORIZED, [29, 30, 31, 53, 58]),
    (Action.UNKNOWN, [-1]),
    (Action.FATAL, [17, 21, 35, 42, 50]),
]


@pytest.mark.parametrize(("action", "codes"), ACTIONS, ids=[a.name.lower() for a, _ in ACTIONS])
def test_each_code_asks_for_its_action(action: Action, codes: list[int]) -> None:
    assert {Code(code).action for code in codes} == {action}


def test_every_number_has_one_name() -> None:
    known: dict[int | None, Any] = kafka_errors.kafka_errors
    assert {number for number in known if number is not None} <= set(Code)
    assert [code.value for code in Code] == list(range(-1, len(Code) - 1))


def test_a_code_from_the_future_keeps_its_number_and_is_fatal() -> None:
    code = Code(4711)
    assert code == 4711
    assert str(code) == f"{code}" == "CODE_4711 (4711)"
    assert code.action is Action.FATAL
    assert not code.is_worth_retrying


def test_a_code_reads_as_name_and_number() -> None:
    assert f"{Code(6)}" == "NOT_LEADER_OR_FOLLOWER (6)"


@pytest.mark.parametrize("code", [5, 6, 7, 14, 16, 19, 51])
def test_questions_are_repeated_on_what_passes_by_itself(code: int) -> None:
    assert Code(code).is_worth_retrying


@pytest.mark.parametrize("code", [0, 1, 10, 29, 45, 47, 53, 87, 90, 100])
def test_questions_are_not_repeated_on_anything_else(code: int) -> None:
    assert not Code(code).is_worth_retrying


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
def test_a_refused_call_becomes_the_error_for_its_code(code: int, kind: type[ClusterError]) -> None:
    error = refusal("primary", "InitProducerId", Code(code), "because")
    assert type(error) is kind
    assert str(error).startswith(f"primary: InitProducerId answered {Code(code)}: because")


def test_a_refused_request_keeps_its_code() -> None:
    error = refusal("primary", "EndTxn", Code.PRODUCER_FENCED)
    assert isinstance(error, RequestRefused)
    assert Code(error.code).action is Action.FENCED

"""The check of a query before its connector is made, with another program in Spark's place."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sparkmirror.copy.task.transform.record_evaluator import FailedRow, RecordRow, RoutedRecord
from sparkmirror.engine.supervisor.query_check import QueryCheck
from sparkmirror.engine.supervisor.query_process import ask_spark
from sparkmirror.engine.supervisor.query_request import QueryAnswer, QueryRequest
from sparkmirror.errors import ConfigFault, DriverLost
from sparkmirror.wire.batch.records import Record

SQL = "sparkmirror.transform.sql"
FUNCTION = "sparkmirror.transform"
QUERY = {SQL: "SELECT * FROM records LIMIT 1"}


class ScriptedSpark:
    """Answers one request after the other."""

    def __init__(self, *answers: QueryAnswer | DriverLost) -> None:
        self._answers = list(answers)
        self.requests: list[QueryRequest] = []

    def __call__(self, request: QueryRequest) -> QueryAnswer:
        self.requests.append(request)
        answer = self._answers.pop(0)
        if isinstance(answer, DriverLost):
            raise answer
        return answer


def test_a_query_is_refused_with_the_sentence_of_spark_and_asked_about_once() -> None:
    spark = ScriptedSpark(QueryAnswer(error="has the operator GlobalLimit"))
    check = QueryCheck({}, ask=spark)
    for _ in range(2):
        assert check.faults({**QUERY, "topics": ".*"}) == [
            ConfigFault(SQL, "has the operator GlobalLimit")
        ]
    assert [request.transforms for request in spark.requests] == [QUERY]


def test_a_config_without_a_query_starts_no_spark() -> None:
    assert QueryCheck({}, ask=ScriptedSpark()).faults({"transforms": ""}) == []


def test_a_function_that_was_refused_is_asked_about_again() -> None:
    spark = ScriptedSpark(QueryAnswer(error="cannot be loaded"), QueryAnswer())
    check = QueryCheck({}, ask=spark)
    assert check.faults({FUNCTION: "rules:mask"}) == [ConfigFault(FUNCTION, "cannot be loaded")]
    assert not check.faults({FUNCTION: "rules:mask"})


def test_a_spark_that_does_not_start_refuses_nothing() -> None:
    check = QueryCheck({}, ask=ScriptedSpark(DriverLost("no Java"), QueryAnswer(error="bad")))
    assert not check.faults(QUERY)
    assert check.faults(QUERY), "asked again"


def test_a_query_on_a_cluster_is_checked_as_any_other() -> None:
    config = {**QUERY, "spark.master": "yarn"}
    assert not QueryCheck({}, ask=ScriptedSpark(QueryAnswer())).faults(config)
    (fault,) = QueryCheck({}, ask=ScriptedSpark(QueryAnswer(error="bad"))).faults(config)
    assert fault == ConfigFault(SQL, "bad")


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({**QUERY, FUNCTION: "rules:mask"}, "are both set"),
        ({FUNCTION: "rules.mask"}, "write it as module:function"),
        (
            {
                **QUERY,
                "transforms": "tidy",
                "transforms.tidy.type": "org.apache.kafka.connect.transforms.DropHeaders",
                "transforms.tidy.headers": "a",
            },
            "cannot be combined with transforms that do more than name topics",
        ),
    ],
)
def test_what_needs_no_spark_is_refused_without_it(config: dict[str, str], text: str) -> None:
    (fault,) = QueryCheck({}, ask=ScriptedSpark()).faults(config)
    assert text in fault.message


ROUTED = {
    **QUERY,
    "transforms": "strip",
    "transforms.strip.type": "org.apache.kafka.connect.transforms.RegexRouter",
    "transforms.strip.regex": "A\\.(.*)",
    "transforms.strip.replacement": "$1",
}


def test_a_route_by_the_name_of_the_topic_may_stand_beside_a_query() -> None:
    assert not QueryCheck({}, ask=ScriptedSpark(QueryAnswer())).faults(ROUTED)


def test_a_query_that_computes_topic_has_no_dead_letters() -> None:
    dead_letters = {
        "errors.tolerance": "all",
        "sparkmirror.errors.deadletterqueue.topic.name": "failed",
    }
    routing = ScriptedSpark(QueryAnswer(routes_records=True))
    check = QueryCheck({}, ask=routing)
    (fault,) = check.faults({**QUERY, **dead_letters})
    assert fault.key == "sparkmirror.errors.deadletterqueue.topic.name"
    assert "not supported with a query that computes topic" in fault.message
    assert not check.faults({**QUERY, "errors.tolerance": "all"})
    assert not QueryCheck({}, ask=ScriptedSpark(QueryAnswer())).faults({**QUERY, **dead_letters})


RECORD = Record(7, -1, None, b"\xff\0", ((b"\xfe", None), (b"a", b"")))


def test_requests_and_answers_survive_their_lines() -> None:
    request = QueryRequest(transforms=QUERY, topic="A.t", rows=((3, RecordRow(RECORD, 1)),))
    assert QueryRequest.from_line(request.to_line()) == request
    failed = FailedRow("java.lang.X", "no")
    routed = (RoutedRecord(RECORD, "returns"), RoutedRecord(RECORD, None))
    answer = QueryAnswer(routes_records=True, outcomes=(RECORD, None, failed, *routed))
    assert QueryAnswer.from_line(answer.to_line()) == answer


@pytest.fixture
def write_module(tmp_path: Path) -> Callable[[str], dict[str, str]]:
    """Write a program in Spark's place; returns the environment in which it is found."""

    def write(text: str) -> dict[str, str]:
        (tmp_path / "spark_in_place.py").write_text(text, "utf-8")
        return {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}

    return write


def test_the_process_gets_the_request_and_its_line_is_the_answer(
    write_module: Callable[[str], dict[str, str]],
) -> None:
    environment = write_module(
        "import sys\n"
        "from sparkmirror.engine.supervisor.query_request import QueryAnswer, QueryRequest\n"
        "request = QueryRequest.from_line(sys.stdin.buffer.readline())\n"
        "sys.stdout.buffer.write(QueryAnswer(error=request.topic).to_line())\n"
    )
    request = QueryRequest(transforms=QUERY, topic="A.t")
    assert ask_spark(request, environment, "spark_in_place") == QueryAnswer(error="A.t")


def test_a_process_that_dies_is_reported_with_its_last_line(
    write_module: Callable[[str], dict[str, str]],
) -> None:
    environment = write_module("import sys\nsys.exit('no Java here')\n")
    with pytest.raises(DriverLost, match="no Java here"):
        ask_spark(QueryRequest(transforms=QUERY), environment, "spark_in_place")

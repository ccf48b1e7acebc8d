"""A process that evaluates queries as a slot of a Spark cluster does: in a Spark of its own.

python -m tests.support.spark.query_slot
    input    one line for each QueryRequest; the process ends with its input
    output   one line for each QueryAnswer
"""

from __future__ import annotations

import sys

from sparkmirror.copy.settings import CopySettings
from sparkmirror.engine.spark.query.executor_spark import ExecutorSpark, start_spark_process
from sparkmirror.engine.spark.query.query_analysis import slot_evaluator
from sparkmirror.engine.spark.query.view_request import ViewRequest
from sparkmirror.engine.supervisor.query_request import QueryAnswer, QueryRequest
from sparkmirror.errors import DriverLost
from tests.support.cli.mirror_process import SPARK_TIMEOUT_S

SESSION_SETTINGS = {"spark.sql.ansi.enabled": "false"}


def main() -> None:
    """Answer the requests on standard input."""
    spark = ExecutorSpark(start_spark_process, wait_s=SPARK_TIMEOUT_S)
    for line in sys.stdin.buffer:
        try:
            answer = _answer(spark, QueryRequest.from_line(line))
        except DriverLost as error:
            answer = QueryAnswer(error=str(error))
        sys.stdout.buffer.write(answer.to_line())
        sys.stdout.buffer.flush()


def _answer(spark: ExecutorSpark, request: QueryRequest) -> QueryAnswer:
    settings = CopySettings(transforms=request.transforms)
    view = ViewRequest(
        settings=SESSION_SETTINGS, transforms=settings.transforms, chain=settings.chain
    )
    evaluator = slot_evaluator(spark.await_view(view), settings)
    rows = [row for _, row in request.rows]
    outcomes = evaluator.evaluate(request.topic, 0, rows, stops_at_failure=True)
    return QueryAnswer(outcomes=tuple(outcomes))


if __name__ == "__main__":
    main()

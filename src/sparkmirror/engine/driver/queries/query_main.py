"""A short-lived Spark that checks queries, and shows what they make of some records.

    python -m sparkmirror.engine.driver.queries.query_main
        input    one line for each QueryRequest; the process ends with its input
        output   one line for each QueryAnswer; everything else goes to standard error

The worker and the command line start it (`supervisor.query_process`): they never load Spark.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from sparkmirror.copy.settings import CopySettings
from sparkmirror.copy.task.transform.record_evaluator import RowOutcome
from sparkmirror.engine.driver.spark_process import prepare_process
from sparkmirror.engine.spark.streaming_query import MirrorStreamingQuery
from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.engine.supervisor.query_request import QueryAnswer, QueryRequest
from sparkmirror.errors import ConfigError
from sparkmirror.transforms.spark_query import spark_query

MASTER = "local[1]"


def main() -> None:
    """Answer the requests on standard input. Never returns: exits the process."""
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    spec = DriverSpec(receipts="", log="", name="sparkmirror query", master=MASTER)
    with tempfile.TemporaryDirectory(prefix="sparkmirror-") as directory:
        spark = MirrorStreamingQuery(prepare_process(spec, Path(directory)).settings)
        for line in sys.stdin.buffer:
            output.write(answer(QueryRequest.from_line(line), spark).to_line())
            output.flush()
        spark.close()
    # Threads of libraries must not keep the process alive.
    os._exit(0)


def answer(request: QueryRequest, spark: MirrorStreamingQuery) -> QueryAnswer:
    """Check the query, and evaluate it on the records. Raises DriverLost."""
    query = spark_query(request.transforms)
    assert query is not None, "the request has a query"
    chain = CopySettings(transforms=request.transforms).chain
    outcomes: list[RowOutcome] = []
    try:
        evaluator = spark.new_evaluator(query, chain)
    except ConfigError as error:
        return QueryAnswer(error=str(error))
    for partition, row in request.rows:
        # One by one, so that each failure has a message of its own.
        outcomes += evaluator.evaluate(request.topic, partition, [row], stops_at_failure=True)
    return QueryAnswer(routes_records=evaluator.routes_records, outcomes=tuple(outcomes))


if __name__ == "__main__":
    main()

"""What the query of a source connector makes of records, as outcomes of transformations."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from sparkmirror.copy.task.transform.batch_transform import header_bytes, header_text
from sparkmirror.copy.task.transform.query_transform import CREATE_TIME, failed_record
from sparkmirror.copy.task.transform.record_evaluator import RecordRow, RowOutcome
from sparkmirror.engine.supervisor.query_process import ask_spark
from sparkmirror.engine.supervisor.query_request import QueryAnswer, QueryRequest
from sparkmirror.errors import ConfigError
from sparkmirror.transforms.record import KafkaRecord
from sparkmirror.transforms.record_transformer import (
    NO_TIMESTAMP,
    DroppedRecord,
    Outcome,
)
from sparkmirror.transforms.spark_query import spark_query, spark_query_settings
from sparkmirror.wire.batch.records import Record

AskSpark: TypeAlias = Callable[[QueryRequest], QueryAnswer]


def query_outcomes(
    config: Mapping[str, str],
    offsets: Sequence[int],
    before: Sequence[KafkaRecord],
    routed: Sequence[Outcome],
    ask: AskSpark | None,
) -> list[Outcome]:
    """Return the outcomes of records. Blocks while Spark starts.

    `routed` are the records after transforms, which only name topics. Raises ConfigError if Spark
    refuses the query, DriverLost if it does not answer.
    """
    query = spark_query(config)
    assert query is not None, "the config has a query"
    rows = tuple(
        (record.partition or 0, RecordRow(_to_record(offset, record), CREATE_TIME))
        for offset, record in zip(offsets, before, strict=True)
    )
    request = QueryRequest(
        transforms=spark_query_settings(config), topic=before[0].topic, rows=rows
    )
    answer = (ask or partial(ask_spark, environment=os.environ))(request)
    if answer.error:
        raise ConfigError.of(query.key, answer.error)
    return [
        _outcome(given, outcome, tolerates_errors=query.tolerates_errors)
        for given, outcome in zip(routed, answer.outcomes, strict=True)
    ]


def _to_record(offset: int, record: KafkaRecord) -> Record:
    headers = tuple((header_bytes(name), value) for name, value in record.headers)
    timestamp = NO_TIMESTAMP if record.timestamp is None else record.timestamp
    return Record(offset, timestamp, record.key, record.value, headers)


def _outcome(routed: Outcome, outcome: RowOutcome, *, tolerates_errors: bool) -> Outcome:
    failed = failed_record(outcome)
    if failed is not None:
        return DroppedRecord(failed) if tolerates_errors else failed
    if not isinstance(outcome, Record) or not isinstance(routed, KafkaRecord):
        return DroppedRecord()
    timestamp = None if outcome.timestamp == NO_TIMESTAMP else outcome.timestamp
    headers = tuple((header_text(name), value) for name, value in outcome.headers)
    return KafkaRecord(
        routed.topic, routed.partition, timestamp, outcome.key, outcome.value, headers
    )

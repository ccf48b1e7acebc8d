"""What the query of a source connector makes of records, as outcomes of transformations."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from sparkmirror.copy.task.transform.batch_transform import header_bytes, header_text
from sparkmirror.copy.task.transform.query_topics import QueryTopics
from sparkmirror.copy.task.transform.query_transform import CREATE_TIME, QueryRecord, query_record
from sparkmirror.copy.task.transform.record_evaluator import RecordRow
from sparkmirror.engine.supervisor.query_process import ask_spark
from sparkmirror.engine.supervisor.query_request import QueryAnswer, QueryRequest
from sparkmirror.errors import ConfigError
from sparkmirror.transforms.record import KafkaRecord
from sparkmirror.transforms.record_transformer import (
    NO_TIMESTAMP,
    DroppedRecord,
    FailedRecord,
    Outcome,
)
from sparkmirror.transforms.spark_query import query_route, spark_query, spark_query_settings
from sparkmirror.wire.batch.records import Record

AskSpark: TypeAlias = Callable[[QueryRequest], QueryAnswer]


def query_outcomes(
    config: Mapping[str, str],
    offsets: Sequence[int],
    before: Sequence[KafkaRecord],
    ask: AskSpark | None,
) -> list[Outcome]:
    """Return the outcomes of records. Blocks while Spark starts.

    Transforms beside the query only name topics. Raises ConfigError if Spark refuses the query,
    DriverLost if it does not answer.
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
    topics = QueryTopics(query_route(config))
    return [
        _outcome(given, query_record(outcome, topics), topics, query.tolerates_errors)
        for given, outcome in zip(before, answer.outcomes, strict=True)
    ]


def _to_record(offset: int, record: KafkaRecord) -> Record:
    headers = tuple((header_bytes(name), value) for name, value in record.headers)
    timestamp = NO_TIMESTAMP if record.timestamp is None else record.timestamp
    return Record(offset, timestamp, record.key, record.value, headers)


def _outcome(
    before: KafkaRecord,
    given: QueryRecord | FailedRecord | None,
    topics: QueryTopics,
    tolerates_errors: bool,
) -> Outcome:
    if isinstance(given, FailedRecord):
        return DroppedRecord(given) if tolerates_errors else given
    if given is None:
        return DroppedRecord()
    record, topic = given.record, given.topic or topics.find(before.topic)
    if isinstance(topic, FailedRecord):
        return topic
    timestamp = None if record.timestamp == NO_TIMESTAMP else record.timestamp
    headers = tuple((header_text(name), value) for name, value in record.headers)
    return KafkaRecord(topic, before.partition, timestamp, record.key, record.value, headers)

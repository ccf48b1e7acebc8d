"""The keys of transformations that Kafka does not have: formats, and dead letters."""

from __future__ import annotations

from typing import Final

from sparkmirror.config.definition.config_def import LOW, MEDIUM, ConfigDef, ConfigKey
from sparkmirror.config.definition.validators import Range, ValidString
from sparkmirror.config.definition.value_types import Type
from sparkmirror.config.plugin_module_allowlist import TRANSFORM_FUNCTION

BYTES_FORMAT: Final = "bytes"
RECORD_FORMATS: Final = (BYTES_FORMAT, "json", "json-with-schema", "string")
"""How transformations may read and write a part of a record."""
KEY_FORMAT: Final = "sparkmirror.transform.key.format"
VALUE_FORMAT: Final = "sparkmirror.transform.value.format"
HEADER_FORMAT: Final = "sparkmirror.transform.header.format"
ERRORS_TOLERANCE: Final = "errors.tolerance"
TRANSFORM_SQL: Final = "sparkmirror.transform.sql"
QUERY_KEYS: Final = frozenset({TRANSFORM_SQL, TRANSFORM_FUNCTION})
"""A connector with one of these keys has a query."""
DEADLETTERQUEUE_TOPIC: Final = "sparkmirror.errors.deadletterqueue.topic.name"
DEADLETTERQUEUE_REPLICATION: Final = "sparkmirror.errors.deadletterqueue.topic.replication.factor"
DEADLETTERQUEUE_CONTEXT: Final = "sparkmirror.errors.deadletterqueue.context.headers.enable"


def format_key(part: str) -> str:
    """The config key of the format of `key`, `value` or `header`."""
    return {"key": KEY_FORMAT, "value": VALUE_FORMAT, "header": HEADER_FORMAT}[part]


def _format(key: str, what: str) -> ConfigKey:
    return ConfigKey(
        key,
        Type.STRING,
        BYTES_FORMAT,
        MEDIUM,
        f"How transformations read and write {what}: bytes, as MirrorMaker 2 has them, for which "
        "transformations of fields fail; json; json-with-schema, the envelope of JsonConverter; or "
        "string. Without effect on what no transformation reads or writes.",
        validator=ValidString(RECORD_FORMATS),
    )


TRANSFORM_ADDITIONS: Final = ConfigDef(
    _format(KEY_FORMAT, "keys"),
    _format(VALUE_FORMAT, "values"),
    _format(HEADER_FORMAT, "values of headers"),
    ConfigKey(
        TRANSFORM_SQL,
        Type.STRING,
        "",
        MEDIUM,
        "A query in Spark's SQL whose rows are the records: SELECT ... FROM records, with WHERE if "
        "records are to be left out. Columns: topic, partition, offset, timestamp, timestamp_type, "
        "key, value, headers. It must give key, value, headers and timestamp. If it computes "
        "topic, records go to different topics, in transactions.",
    ),
    ConfigKey(
        TRANSFORM_FUNCTION,
        Type.STRING,
        "",
        MEDIUM,
        "The same as a Python function, given as module:function. It gets the DataFrame of records "
        "and returns a DataFrame. sparkmirror.plugin.modules must list its module.",
    ),
    ConfigKey(
        DEADLETTERQUEUE_TOPIC,
        Type.STRING,
        "",
        MEDIUM,
        "Topic of the target for the records that a transformation fails on, unchanged. Needs "
        "errors.tolerance=all. Empty: such records are dropped and counted.",
    ),
    ConfigKey(
        DEADLETTERQUEUE_REPLICATION,
        Type.SHORT,
        3,
        MEDIUM,
        "Replication factor with which that topic is created if it is missing.",
        validator=Range(1),
    ),
    ConfigKey(
        DEADLETTERQUEUE_CONTEXT,
        Type.BOOLEAN,
        False,
        LOW,
        "Whether a dead letter gets headers that say where it comes from and why it failed: the "
        "names of Connect's, which begin with __connect.errors.",
    ),
)
"""What a source connector with transformations reads besides Kafka's keys."""

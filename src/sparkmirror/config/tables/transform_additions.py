"""The keys of transformations that Kafka does not have: formats, and dead letters."""

from __future__ import annotations

from typing import Final

from sparkmirror.config.definition.config_def import LOW, MEDIUM, ConfigDef, ConfigKey
from sparkmirror.config.definition.validators import Range, ValidString
from sparkmirror.config.definition.value_types import Type

BYTES_FORMAT: Final = "bytes"
RECORD_FORMATS: Final = (BYTES_FORMAT, "json", "json-with-schema", "string")
"""How transformations may read and write a part of a record."""
ERRORS_TOLERANCE: Final = "errors.tolerance"
DEAD_LETTER_TOPIC: Final = "sparkmirror.errors.deadletterqueue.topic.name"
DEAD_LETTER_REPLICATION: Final = "sparkmirror.errors.deadletterqueue.topic.replication.factor"
DEAD_LETTER_CONTEXT: Final = "sparkmirror.errors.deadletterqueue.context.headers.enable"


def format_key(part: str) -> str:
    """The config key of the format of `key`, `value` or `header`."""
    return f"sparkmirror.transform.{part}.format"


def _format(part: str, what: str) -> ConfigKey:
    return ConfigKey(
        format_key(part),
        Type.STRING,
        BYTES_FORMAT,
        MEDIUM,
        f"How transformations read and write {what}: bytes, as MirrorMaker 2 has them, for which "
        "transformations of fields fail; json; json-with-schema, the envelope of JsonConverter; or "
        "string. Without effect on what no transformation reads or writes.",
        validator=ValidString(RECORD_FORMATS),
    )


TRANSFORM_ADDITIONS: Final = ConfigDef(
    _format("key", "keys"),
    _format("value", "values"),
    _format("header", "values of headers"),
    ConfigKey(
        DEAD_LETTER_TOPIC,
        Type.STRING,
        "",
        MEDIUM,
        "Topic of the target for the records that a transformation fails on, unchanged. Needs "
        "errors.tolerance=all. Empty: such records are dropped and counted.",
    ),
    ConfigKey(
        DEAD_LETTER_REPLICATION,
        Type.SHORT,
        3,
        MEDIUM,
        "Replication factor with which that topic is created if it is missing.",
        validator=Range(1),
    ),
    ConfigKey(
        DEAD_LETTER_CONTEXT,
        Type.BOOLEAN,
        False,
        LOW,
        "Whether a dead letter gets headers that say where it comes from and why it failed: the "
        "names of Connect's, which begin with __connect.errors.",
    ),
)
"""What a source connector with transformations reads besides Kafka's keys."""

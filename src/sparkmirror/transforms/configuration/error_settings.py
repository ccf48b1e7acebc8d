"""What a source connector does about records that fail, besides tolerating them or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from sparkmirror.config.definition.config_def import ConfigDef
from sparkmirror.config.definition.value_types import Props
from sparkmirror.config.tables.connector_config import CONNECTOR
from sparkmirror.config.tables.transform_additions import (
    DEADLETTERQUEUE_CONTEXT,
    DEADLETTERQUEUE_REPLICATION,
    DEADLETTERQUEUE_TOPIC,
    TRANSFORM_ADDITIONS,
)

_LOG_ENABLE: Final = "errors.log.enable"
_LOG_INCLUDE_MESSAGES: Final = "errors.log.include.messages"
_LOG_KEYS: Final = ConfigDef(CONNECTOR[_LOG_ENABLE], CONNECTOR[_LOG_INCLUDE_MESSAGES])


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedRecordsTopic:
    """The topic of the target for records that failed: Connect's dead letter queue."""

    name: str
    replication_factor: int
    has_context_headers: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorSettings:
    """The keys `errors.log.*`, and those of dead letters."""

    logs_errors: bool = False
    logs_records: bool = False
    """Whether a log line names the record. Keys and values are never logged."""
    topic: FailedRecordsTopic | None = None

    @classmethod
    def from_config(cls, props: Props) -> Self:
        """Read a connector's config. Raises ConfigError."""
        log = _LOG_KEYS.parse(props)
        own = TRANSFORM_ADDITIONS.parse(props)
        name, factor = own[DEADLETTERQUEUE_TOPIC], own[DEADLETTERQUEUE_REPLICATION]
        assert isinstance(name, str)
        assert isinstance(factor, int)
        return cls(
            logs_errors=log[_LOG_ENABLE] is True,
            logs_records=log[_LOG_INCLUDE_MESSAGES] is True,
            topic=FailedRecordsTopic(
                name=name,
                replication_factor=factor,
                has_context_headers=own[DEADLETTERQUEUE_CONTEXT] is True,
            )
            if name
            else None,
        )

"""What a source connector does about records that fail and are tolerated: logs, dead letters."""

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

LOG_ENABLE: Final = "errors.log.enable"
LOG_INCLUDE_MESSAGES: Final = "errors.log.include.messages"
_LOG_KEYS: Final = ConfigDef(CONNECTOR[LOG_ENABLE], CONNECTOR[LOG_INCLUDE_MESSAGES])


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterTopic:
    """The topic of the target for records that failed: Connect's dead letter queue."""

    name: str
    replication_factor: int
    has_context_headers: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorSettings:
    """The keys `errors.log.*`, and those of dead letters."""

    logs_errors: bool = False
    logs_contents: bool = False
    """Whether a log line has key, value and headers of the record."""
    dead_letters: DeadLetterTopic | None = None

    @classmethod
    def from_config(cls, props: Props) -> Self:
        """Read a connector's config. Raises ConfigError."""
        log = _LOG_KEYS.parse(props)
        return cls(
            logs_errors=log[LOG_ENABLE] is True,
            logs_contents=log[LOG_INCLUDE_MESSAGES] is True,
            dead_letters=dead_letter_topic(props),
        )


def dead_letter_topic(props: Props) -> DeadLetterTopic | None:
    """The topic that a connector's config names; None if it names none. Raises ConfigError."""
    own = TRANSFORM_ADDITIONS.parse(props)
    name, factor = own[DEADLETTERQUEUE_TOPIC], own[DEADLETTERQUEUE_REPLICATION]
    assert isinstance(name, str)
    assert isinstance(factor, int)
    if not name:
        return None
    return DeadLetterTopic(
        name=name,
        replication_factor=factor,
        has_context_headers=own[DEADLETTERQUEUE_CONTEXT] is True,
    )

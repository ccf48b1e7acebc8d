"""Records of a partition that failed in a transformation and are tolerated: log, dead letters.

A conversion adds them as it meets them, before the queue advances over them, so that nothing behind
them is sent too early. At its end it settles: records that the position has not reached will be
read again, and are forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self

from sparkmirror.copy.settings import CopySettings
from sparkmirror.copy.task.produce.dead_letter import DeadLetter
from sparkmirror.copy.task.produce.partition_queue import PartitionQueue
from sparkmirror.copy.task.transform.error_log import ErrorLog
from sparkmirror.copy.task.transform.failed_record_texts import (
    ExecutingClasses,
    RecordOrigin,
    context_headers,
)
from sparkmirror.transforms.configuration.error_settings import DeadLetterTopic, ErrorSettings
from sparkmirror.transforms.record_transformer import FailedRecord
from sparkmirror.wire.batch.records import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureReporting:
    """What a task does about records that fail. None of either part: they are only counted."""

    connector: str
    classes: ExecutingClasses
    log: ErrorLog | None
    topic: DeadLetterTopic | None

    @classmethod
    def for_settings(cls, settings: CopySettings) -> Self | None:
        """Read the connector's keys; None if records that fail are only counted."""
        if not settings.transforms:
            return None
        errors = ErrorSettings.from_config(settings.transforms)
        if not (errors.logs_errors or errors.dead_letters):
            return None
        classes = ExecutingClasses.from_config(settings.transforms)
        log = ErrorLog(classes=classes, with_contents=errors.logs_contents)
        return cls(
            connector=settings.connector,
            classes=classes,
            log=log if errors.logs_errors else None,
            topic=errors.dead_letters,
        )


@dataclass(slots=True)
class PartitionFailures:
    """The failed records of one leased partition."""

    reporting: FailureReporting
    origin: RecordOrigin
    _unsettled: list[tuple[Record, FailedRecord]] = field(default_factory=list)

    def add(
        self, queue: PartitionQueue, records: Iterable[Record], errors: Iterable[FailedRecord]
    ) -> None:
        """Record failures, in source order; the queue waits for their letters."""
        for record, failed in zip(records, errors, strict=True):
            self._unsettled.append((record, failed))
            if self.reporting.topic:
                queue.add_dead_letter(DeadLetter(self._dead_letter(record, failed)))

    def needs_dead_letter(self, queue: PartitionQueue) -> bool:
        """Whether the next failed record is the first one whose letter the queue waits for."""
        return self.reporting.topic is not None and not queue.dead_letters

    def settle(self, queue: PartitionQueue) -> int:
        """Log the failures that the queue has passed, and forget the others.

        Returns the number of log lines.
        """
        if not self._unsettled:
            return 0
        position = queue.next_fetch_offset
        passed = [one for one in self._unsettled if one[0].offset < position]
        self._unsettled.clear()
        queue.drop_dead_letters_from(position)
        if not passed or self.reporting.log is None:
            return 0
        return self.reporting.log.report(self.origin, passed)

    def _dead_letter(self, record: Record, failed: FailedRecord) -> Record:
        assert self.reporting.topic
        if not self.reporting.topic.has_context_headers:
            return record
        context = context_headers(self.origin, record.offset, failed, self.reporting.classes)
        return record._replace(headers=(*record.headers, *context))

"""Log lines about records that failed and are tolerated (`errors.log.enable`).

A partition gets at most one line in `LOG_INTERVAL_S`, so that a topic of bad records fills no disk.
The next line says how many records were left out; if none comes, `poll` says it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sparkmirror.copy.task.transform.failed_record_texts import (
    ExecutingClasses,
    RecordOrigin,
    log_text,
)
from sparkmirror.model import TopicPartition
from sparkmirror.transforms.record_transformer import FailedRecord
from sparkmirror.wire.batch.records import Record

log = logging.getLogger(__name__)

LOG_INTERVAL_S = 1.0


@dataclass(slots=True, kw_only=True)
class ErrorLog:
    """Logs the failures of one task. Belongs to its thread."""

    classes: ExecutingClasses
    with_contents: bool
    clock: Callable[[], float] = time.monotonic
    _next_at: dict[TopicPartition, float] = field(default_factory=dict)
    _left_out: dict[TopicPartition, int] = field(default_factory=dict)

    def report(self, origin: RecordOrigin, failures: Sequence[tuple[Record, FailedRecord]]) -> int:
        """Log the first of some failures, if it is time; return the number of lines."""
        partition, now = origin.partition, self.clock()
        if now < self._next_at.get(partition, now):
            self._left_out[partition] = self._left_out.get(partition, 0) + len(failures)
            return 0
        self._log_left_out(partition)
        record, failed = failures[0]
        text = log_text(origin, record, failed, self.classes, with_contents=self.with_contents)
        log.error("%s", text)
        self._next_at[partition] = now + LOG_INTERVAL_S
        if len(failures) > 1:
            self._left_out[partition] = len(failures) - 1
        return 1

    def poll(self, now: float) -> None:
        """Log how many records were left out, of partitions that may be logged again."""
        for partition in [one for one in self._left_out if now >= self._next_at[one]]:
            self._log_left_out(partition)
            self._next_at[partition] = now + LOG_INTERVAL_S

    def _log_left_out(self, partition: TopicPartition) -> None:
        count = self._left_out.pop(partition, 0)
        if count:
            log.error("%s: %d more records failed in transformations", partition, count)

"""Passes records through a chain for which topic and headers are enough. Keys and values stay shut.

A chain asks for headers by their names. A batch in whose bytes none of these names occurs has the
same outcome for all of its records: it is copied as it is, or dropped. Else each record is looked
at, and records with equal headers have equal outcomes, so that outcomes are remembered.

Outcomes are those of `batch_transform`, with one exception: the timestamps that no producer sends
(below -1) are not noticed here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from sparkmirror.copy.task.transform.batch_transform import (
    BatchTransform,
    RecordOutcomes,
    header_bytes,
    header_text,
    refused_record,
)
from sparkmirror.transforms.record import KafkaRecord
from sparkmirror.transforms.record_transformer import DroppedRecord, FailedRecord
from sparkmirror.wire.batch.header import BatchHeader
from sparkmirror.wire.batch.record_headers import (
    NO_HEADERS,
    encode_header_section,
    find_header_section,
    read_header_section,
)
from sparkmirror.wire.batch.records import (
    SLOT_OFFSET_DELTA,
    RecordSlot,
    corrupt_batch,
    scan_records,
)
from sparkmirror.wire.batch.rewrite import RewrittenRecord

_SectionOutcome: TypeAlias = bytes | DroppedRecord | FailedRecord
"""The header section afterwards, or what became of the record instead."""
_MAX_REMEMBERED: Final = 1024
_MAX_REMEMBERED_BYTES: Final = 256
"""Longer sections are hardly equal."""


class HeaderTransform:
    """A chain for the headers of the records of one partition."""

    def __init__(self, transform: BatchTransform, names: Iterable[str]) -> None:
        """`names` are all names of headers that the chain asks for."""
        self._transform = transform
        self._names = tuple(header_bytes(name) for name in names)
        self._outcomes: dict[bytes, _SectionOutcome] = {}
        self._unnamed = self._evaluate(NO_HEADERS)
        """The outcome of a record that has none of these headers."""

    @property
    def keeps_unnamed(self) -> bool:
        """Whether records without any of these headers stay as they are."""
        return self._unnamed == NO_HEADERS

    @property
    def filters_unnamed(self) -> bool:
        """Whether records without any of these headers are dropped."""
        return isinstance(self._unnamed, DroppedRecord) and self._unnamed.tolerated is None

    def may_concern(self, body: bytes) -> bool:
        """Whether one of the names occurs in the bytes of records."""
        return any(name in body for name in self._names)

    def apply(self, header: BatchHeader, body: bytes, position: int) -> tuple[RecordOutcomes, bool]:
        """Return the outcomes of the records from the position on; whether any was changed.

        A batch of which records are dropped or lie before the position is changed, too.
        """
        slots = scan_records(header, body)
        outcomes = RecordOutcomes()
        try:
            is_changed = self._apply(header, body, slots, position, outcomes)
        except (ValueError, IndexError) as error:
            raise corrupt_batch(header, f"holds {error}") from error
        return outcomes, is_changed or len(outcomes.kept) < len(slots)

    def _apply(
        self,
        header: BatchHeader,
        body: bytes,
        slots: list[RecordSlot],
        position: int,
        outcomes: RecordOutcomes,
    ) -> bool:
        base, base_timestamp = header.base_offset, header.base_timestamp
        append_time = header.max_timestamp if header.is_log_append_time else None
        known, keep, is_changed = self._outcomes, outcomes.kept.append, False
        for _, _, _, rest, offset_delta, timestamp_delta, end in slots:
            offset = base + offset_delta
            if offset < position:
                continue
            at = find_header_section(body, rest, end)
            section = body[at:end]
            outcome = known.get(section) or self._outcome(section)
            if isinstance(outcome, bytes):
                timestamp = base_timestamp + timestamp_delta if append_time is None else append_time
                if outcome == section:
                    keep(RewrittenRecord(offset, timestamp, body[rest:end]))
                else:
                    is_changed = True
                    keep(RewrittenRecord(offset, timestamp, body[rest:at] + outcome))
            elif isinstance(outcome, FailedRecord):
                outcomes.refused = refused_record(offset, outcome)
                return True
            elif outcome.tolerated is None:
                outcomes.filtered.append(offset)
            else:
                outcomes.skipped.append(offset)
        return is_changed

    def _outcome(self, section: bytes) -> _SectionOutcome:
        """Return the outcome of a section that is not remembered."""
        if not self.may_concern(section):
            if self.keeps_unnamed:
                return section
            if self.filters_unnamed:
                return self._unnamed
        outcome = self._evaluate(section)
        if len(section) <= _MAX_REMEMBERED_BYTES:
            if len(self._outcomes) >= _MAX_REMEMBERED:
                self._outcomes.clear()
            self._outcomes[section] = outcome
        return outcome

    def _evaluate(self, section: bytes) -> _SectionOutcome:
        headers = tuple(
            [(header_text(name), content) for name, content in read_header_section(section)]
        )
        transform = self._transform
        record = KafkaRecord(transform.topic, transform.partition, 0, None, None, headers)
        outcome = transform.transformer.transform(record)
        if not isinstance(outcome, KafkaRecord):
            return outcome
        if outcome.headers == headers:
            return section
        return encode_header_section(
            [(header_bytes(name), content) for name, content in outcome.headers]
        )


def count_from(header: BatchHeader, body: bytes, position: int) -> int:
    """Return how many records of a batch lie at the position or behind it. Raises BatchError."""
    if header.base_offset >= position:
        return header.record_count
    first = position - header.base_offset
    return sum(slot[SLOT_OFFSET_DELTA] >= first for slot in scan_records(header, body))

"""Passes records through a chain for which topic and headers are enough. Keys and values stay shut.

A chain asks for headers by their names. A batch in whose bytes none of these names occurs has the
same outcome for all of its records: it is copied as it is, or dropped. Else each record is looked
at. What becomes of it depends on which of these names it has; only if the chain adds headers, too,
all headers count. Both is remembered.

Outcomes are those of `batch_transform`, with one exception: the timestamps that no producer sends
(below -1) are not noticed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import merge
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
    encode_name,
    find_header_section,
    join_header_section,
    read_header_section,
    split_header_section,
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
_AS_IT_IS: Final = b""
"""Stands for the section of the record, unchanged. No section is empty."""
_NamesOutcome: TypeAlias = frozenset[bytes] | DroppedRecord | FailedRecord
"""The names of the headers that are taken away, or what became of the record instead."""
_BYTES_PER_MISS_BITS: Final = 7
"""A byte that occurs more often than once in so many bytes (as a power of two) is frequent."""
_MAX_REMEMBERED: Final = 1024
_MAX_REMEMBERED_BYTES: Final = 256
"""Longer sections are hardly equal."""


class HeaderTransform:
    """A chain for the headers of the records of one partition."""

    def __init__(self, transform: BatchTransform, names: Iterable[str]) -> None:
        """`names` are all names of headers that the chain asks for."""
        self._transform = transform
        self._names = frozenset(header_bytes(name) for name in names)
        self._encoded_names = tuple(encode_name(name) for name in self._names)
        self._adds_headers = transform.transformer.adds_headers
        self._by_names: dict[frozenset[bytes], _NamesOutcome] = {}
        self._outcomes: dict[bytes, _SectionOutcome] = {}
        self._unnamed = self._evaluate(NO_HEADERS)
        """The outcome of a record that has none of these headers."""

    @property
    def keeps_unnamed(self) -> bool:
        """Whether records without any of these headers stay as they are."""
        return self._unnamed is _AS_IT_IS

    @property
    def filters_unnamed(self) -> bool:
        """Whether records without any of these headers are dropped."""
        return isinstance(self._unnamed, DroppedRecord) and self._unnamed.tolerated is None

    def may_concern(self, body: bytes) -> bool:
        """Whether one of the names occurs in the bytes of records, behind its length."""
        return any(True for name in self._encoded_names for _ in _positions(name, body))

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
        """Add the outcomes; return whether headers of a kept record are changed."""
        base, base_timestamp = header.base_offset, header.base_timestamp
        append_time = header.max_timestamp if header.is_log_append_time else None
        keep, is_changed = outcomes.kept.append, False
        unnamed: _SectionOutcome | None = _AS_IT_IS if self.keeps_unnamed else None
        if self.filters_unnamed:
            unnamed = self._unnamed
        named = self._name_positions(body)
        next_named = next(named, len(body))
        for _, _, _, rest, offset_delta, timestamp_delta, end in slots:
            while next_named < rest:
                next_named = next(named, len(body))
            offset = base + offset_delta
            if offset < position:
                continue
            at, outcome = rest, unnamed
            if outcome is None or next_named < end:
                at = find_header_section(body, rest, end)
                outcome = self._outcome(body[at:end])
            if isinstance(outcome, bytes):
                timestamp = base_timestamp + timestamp_delta if append_time is None else append_time
                if outcome is _AS_IT_IS:
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
                outcomes.errors.append(outcome.tolerated)
        return is_changed

    def _name_positions(self, body: bytes) -> Iterator[int]:
        """Yield where in the bytes of records one of the names may be, in order."""
        return merge(*(_positions(name, body) for name in self._encoded_names))

    def _outcome(self, section: bytes) -> _SectionOutcome:
        """Return the outcome of a record with these headers."""
        if not self._adds_headers:
            return self._take_away(section)
        outcome = self._outcomes.get(section)
        if outcome is None:
            outcome = self._evaluate(section)
            if len(section) <= _MAX_REMEMBERED_BYTES:
                if len(self._outcomes) >= _MAX_REMEMBERED:
                    self._outcomes.clear()
                self._outcomes[section] = outcome
        return outcome

    def _take_away(self, section: bytes) -> _SectionOutcome:
        """Return the outcome under a chain that does nothing to headers but take them away.

        It depends on which of the names there are, and not on values or other headers.
        """
        headers = split_header_section(section)
        present = frozenset([name for name, _ in headers if name in self._names])
        outcome = self._by_names.get(present)
        if outcome is None:
            outcome = self._by_names[present] = self._removed_names(present)
        if not isinstance(outcome, frozenset):
            return outcome
        if not outcome:
            return _AS_IT_IS
        return join_header_section([encoded for name, encoded in headers if name not in outcome])

    def _removed_names(self, present: frozenset[bytes]) -> _NamesOutcome:
        outcome = self._evaluate(encode_header_section([(name, None) for name in present]))
        if outcome is _AS_IT_IS:
            return frozenset()
        if not isinstance(outcome, bytes):
            return outcome
        return present - {name for name, _ in read_header_section(outcome)}

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
            return _AS_IT_IS
        return encode_header_section(
            [(header_bytes(name), content) for name, content in outcome.headers]
        )


def _positions(name: bytes, body: bytes) -> Iterator[int]:
    """Yield where a name occurs, behind its length.

    A search for one byte is many times faster than one for several. The length is a byte that is
    rare in most bodies; if it turns out to be frequent, the whole name is searched.
    """
    first = name[:1]
    misses = (len(body) >> _BYTES_PER_MISS_BITS) + 8
    at = body.find(first)
    while at >= 0 and misses:
        if body.startswith(name, at):
            yield at
        else:
            misses -= 1
        at = body.find(first, at + 1)
    while at >= 0:
        at = body.find(name, at)
        if at >= 0:
            yield at
            at += 1


def count_from(header: BatchHeader, body: bytes, position: int) -> int:
    """Return how many records of a batch lie at the position or behind it. Raises BatchError."""
    if header.base_offset >= position:
        return header.record_count
    first = position - header.base_offset
    return sum(slot[SLOT_OFFSET_DELTA] >= first for slot in scan_records(header, body))

"""Passes the records of one partition through the connector's chain. Pure.

Every record is kept, dropped or refused. The first record that is refused ends the work: nothing
behind it is read, and it has the reason.

    source offsets   10   11   12   13   14
    outcomes         kept drop kept fail          refused at 13; 14 is not read

The topic that the chain gives a record is read only if records of one topic may get different ones
(`routes`). A record for a topic that is not known yet is refused, too: the topic must be created
first. Names of headers are text in a chain and bytes in a record. A name that is not
UTF-8 keeps its bytes (Java replaces them).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from sparkmirror.copy.task.batch_converter import UncopyableRecord
from sparkmirror.copy.task.transform.query_topics import invalid_topic
from sparkmirror.model import is_topic_name
from sparkmirror.transforms.record import KafkaRecord
from sparkmirror.transforms.record_transformer import (
    NO_TIMESTAMP,
    DroppedRecord,
    ErrorStage,
    FailedRecord,
    RecordTransformer,
)
from sparkmirror.transforms.transformation import RecordPart
from sparkmirror.wire.batch.records import Record
from sparkmirror.wire.batch.rewrite import RewrittenRecord, encode_content


@dataclass(slots=True)
class RecordOutcomes:
    """What became of records, in source order."""

    kept: list[RewrittenRecord] = field(default_factory=list)
    """Those for the remote topic."""
    routed: dict[str, list[RewrittenRecord]] = field(default_factory=dict)
    """Those for other topics."""
    filtered: list[int] = field(default_factory=list)
    """The source offsets of records that the chain dropped."""
    skipped: list[int] = field(default_factory=list)
    """Those of records that failed and are dropped, because the connector tolerates errors."""
    errors: list[FailedRecord] = field(default_factory=list)
    """Where and why each of these failed."""
    refused: UncopyableRecord | None = None
    """The first record that failed and is not tolerated."""


@dataclass(frozen=True, slots=True)
class RecordRoutes:
    """The remote topic of a partition, and which other topics can get its records now."""

    remote_topic: str
    is_known: Callable[[str], bool]

    def refusal(self, topic: str, offset: int) -> UncopyableRecord | None:
        """Return why a record cannot go to this topic now; None if it can."""
        if topic == self.remote_topic or self.is_known(topic):
            return None
        if not is_topic_name(topic):
            failed = FailedRecord(ErrorStage.PRODUCER_RECORD, invalid_topic(topic))
            return refused_record(offset, failed)
        return UncopyableRecord(
            offset=offset,
            reason=f"the record at offset {offset} goes to {topic}, which the driver must create",
            wanted_topic=topic,
        )


@dataclass(slots=True, kw_only=True)
class BatchTransform:
    """A chain for the records of one partition."""

    transformer: RecordTransformer
    topic: str
    """The topic that the chain's first stage sees: the name that the replication policy gives."""
    partition: int
    routes: RecordRoutes | None = None
    """Where records may go; None if all go to the remote topic."""
    _ignores_headers: bool = field(init=False)

    def __post_init__(self) -> None:
        self._ignores_headers = self.transformer.parts.ignores(RecordPart.HEADERS)

    def apply(self, records: Iterable[Record]) -> RecordOutcomes:
        """Return the outcomes, up to the first record that is refused."""
        outcomes = RecordOutcomes()
        for record in records:
            outcomes.refused = self._apply_one(record, outcomes)
            if outcomes.refused:
                break
        return outcomes

    def _apply_one(self, record: Record, outcomes: RecordOutcomes) -> UncopyableRecord | None:
        offset, timestamp, key, value, headers = record
        names = () if self._ignores_headers else tuple([(header_text(n), c) for n, c in headers])
        outcome = self.transformer.transform(
            KafkaRecord(self.topic, self.partition, timestamp, key, value, names)
        )
        if isinstance(outcome, FailedRecord):
            return refused_record(offset, outcome)
        if isinstance(outcome, DroppedRecord):
            if outcome.tolerated is None:
                outcomes.filtered.append(offset)
            else:
                outcomes.skipped.append(offset)
                outcomes.errors.append(outcome.tolerated)
            return None
        kept = outcomes.kept
        if self.routes is not None and outcome.topic != self.routes.remote_topic:
            if refusal := self.routes.refusal(outcome.topic, offset):
                return refusal
            kept = outcomes.routed.setdefault(outcome.topic, [])
        if not self._ignores_headers:
            headers = tuple([(header_bytes(name), content) for name, content in outcome.headers])
        kept.append(
            RewrittenRecord(
                offset,
                NO_TIMESTAMP if outcome.timestamp is None else outcome.timestamp,
                encode_content(outcome.key, outcome.value, headers),
            )
        )
        return None


def header_text(name: bytes) -> str:
    """The name of a header for a chain."""
    return name.decode("utf-8", "surrogateescape")


def header_bytes(name: str) -> bytes:
    """The name of a header in a record."""
    try:
        return name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a lone surrogate of the config, for which Java writes "?"
        return name.encode("utf-8", "replace")


def refused_record(offset: int, failed: FailedRecord) -> UncopyableRecord:
    """A failed record as one that cannot be copied, with what to do."""
    error = failed.error
    where = failed.stage.value
    if error.alias:
        where += f" by transforms.{error.alias}"
    advice = "change the transforms, or drop such records with errors.tolerance=all"
    if failed.stage is ErrorStage.PRODUCER_RECORD:
        advice = "no producer sends such a record; filter it by a predicate"
    return UncopyableRecord(
        offset=offset,
        reason=f"the record at offset {offset} failed in {where}: {error.java_class}: {error};"
        f" {advice}",
    )

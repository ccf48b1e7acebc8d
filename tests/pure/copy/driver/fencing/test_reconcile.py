"""Reconcile: where the source resumes, found in two logs in memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.copy.driver.fencing.reconcile import (
    ReconciledPosition,
    ReconcileFailed,
    ReconcileMethod,
    Reconciler,
    same_record,
    source_offsets,
)
from sparkmirror.copy.lease import NOT_IDEMPOTENT, Lease, LeaseIdentity
from sparkmirror.copy.settings import CopySettings
from sparkmirror.copy.task.transform.converter_factory import ConverterFactory
from sparkmirror.errors import BatchError
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.header import HEADER_BYTES, BatchHeader, read_header
from sparkmirror.wire.batch.lanes.forward import BatchProducer, forward_batch
from sparkmirror.wire.batch.records import Record, build_batch
from sparkmirror.wire.batch.target_limits import TargetLimits
from sparkmirror.wire.protocol.synchronous.synchronous_fetch import (
    OffsetOutOfRange,
    SingleFetchResult,
)
from tests.support.copy.transform_chains import DROP_MARKED
from tests.support.kafka.record_batches import CONTROL_BIT, fix_checksum

SOURCE, TARGET = TopicPartition("t", 0), TopicPartition("A.t", 0)
OWN, OTHER = 7, 8
LIMITS = TargetLimits()


class InMemoryLog:
    """One partition log."""

    def __init__(self) -> None:
        self.batches: list[tuple[BatchHeader, bytes]] = []
        self.end = 0

    def append(
        self,
        values: Iterable[int],
        *,
        producer_id: int = -1,
        sequence: int = -1,
        is_control: bool = False,
        is_odd_marked: bool = False,
        value: bytes = b"%d",
        skip: int = 0,
    ) -> None:
        """Append one batch, after `skip` offsets without records.

        `is_odd_marked` gives records with odd values the header `drop`.
        """
        self.end += skip
        records = [
            Record(
                self.end + n,
                1000 + number,
                b"k",
                value % number,
                ((b"drop", None),) if is_odd_marked and number % 2 else (),
            )
            for n, number in enumerate(values)
        ]
        plain = memoryview(build_batch(records))
        producer = BatchProducer(producer_id=producer_id, epoch=1 if producer_id >= 0 else -1)
        batch = bytearray(b"".join(forward_batch(read_header(plain), plain, producer, sequence)))
        batch[:8] = self.end.to_bytes(8, "big")
        batch[22] |= CONTROL_BIT if is_control else 0
        self.batches.append((read_header(fix_checksum(batch)), bytes(batch)))
        self.end += len(records)

    def batch_at(self, partition: TopicPartition, offset: int) -> tuple[BatchHeader, bytes]:
        for header, batch in self.batches:
            if header.next_offset > offset:
                return header, batch
        raise OffsetOutOfRange("A", f"{partition} does not hold offset {offset}")

    def fetch(
        self, partition: TopicPartition, offset: int, *, read_committed: bool = False
    ) -> SingleFetchResult:
        rest = [batch for header, batch in self.batches if header.next_offset > offset]
        return SingleFetchResult(
            records=b"".join(rest),
            aborted_transactions=(),
            high_watermark=self.end,
            last_stable_offset=self.end,
            log_start_offset=0,
        )


class Logs:
    """A source and a target; the ledger knows the first 10 records."""

    def __init__(self) -> None:
        self.source, self.target = InMemoryLog(), InMemoryLog()
        self.sequence = 0
        self.converters = ConverterFactory()
        self.own(range(10))
        self.lease = Lease(
            source=SOURCE,
            target=TARGET,
            position=10,
            expected=10,
            identity=LeaseIdentity(producer_id=OWN, producer_epoch=1, anchor=0),
        )

    def own(self, values: Iterable[int]) -> None:
        wanted = list(values)
        self.target.append(wanted, producer_id=OWN, sequence=self.sequence)
        self.sequence += len(wanted)

    def find(self) -> ReconciledPosition:
        reconciler = Reconciler(
            source=self.source,
            target=self.target,
            read_committed=True,
            converters=self.converters,
        )
        return reconciler.find(self.lease, self.target.end, LIMITS)


def logs(source_values: int = 40) -> Logs:
    made = Logs()
    for first in range(0, source_values, 5):
        made.source.append(range(first, first + 5))
    return made


def test_nothing_appended_resumes_at_the_ledger() -> None:
    assert logs().find() == ReconciledPosition(position=10)


def test_only_a_fence_behind_the_ledger_is_nothing_appended() -> None:
    both = logs()
    both.target.append([0], producer_id=OWN, is_control=True)
    assert both.find() == ReconciledPosition(position=10)


def test_an_unbroken_sequence_is_jumped_over() -> None:
    both = logs()
    both.own(range(10, 15))
    both.own(range(15, 22))
    both.target.append([0], producer_id=OWN, is_control=True)
    assert both.find() == ReconciledPosition(position=22, appended=12, method=ReconcileMethod.JUMP)


def test_foreign_records_behind_own_ones_are_reported() -> None:
    both = logs()
    both.own(range(10, 15))
    both.target.append([99], producer_id=OTHER, sequence=0)
    assert both.find() == ReconciledPosition(
        position=15, appended=5, method=ReconcileMethod.JUMP, has_foreign_records=True
    )


def test_foreign_records_between_own_ones_are_not_counted() -> None:
    both = logs()
    both.own(range(10, 15))
    both.target.append([99, 98], producer_id=OTHER, sequence=0)
    both.own(range(15, 18))
    assert both.find() == ReconciledPosition(
        position=18, appended=8, method=ReconcileMethod.WALK, has_foreign_records=True
    )


def test_a_fence_between_own_batches_is_not_counted() -> None:
    both = logs()
    both.own(range(10, 15))
    both.target.append([0], producer_id=OWN, is_control=True)
    both.own(range(15, 18))
    found = both.find()
    assert (found.position, found.appended, found.has_foreign_records) == (18, 8, False)


def test_gaps_in_the_source_are_walked_over() -> None:
    both = Logs()
    both.source.append(range(10))
    both.source.append(range(10, 15), skip=3)
    both.source.append(range(15, 20), skip=2)
    both.own(range(10, 17))
    found = both.find()
    assert (found.position, found.appended, found.method) == (22, 7, ReconcileMethod.WALK)


def test_a_source_that_does_not_hold_the_last_own_record_has_no_match() -> None:
    both = logs()
    both.own([10, 11, 777])
    with pytest.raises(ReconcileFailed, match=r"the end of A.t-0 has no match in t-0"):
        both.find()


def test_a_source_shorter_than_what_was_appended_has_no_match() -> None:
    both = logs(source_values=15)
    both.own(range(10, 20))
    with pytest.raises(ReconcileFailed, match="compacted or changed"):
        both.find()


def test_a_target_full_of_foreign_batches_has_no_match(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparkmirror.copy.driver.fencing.reconcile.MAX_BATCHES_BACK", 3)
    both = logs()
    both.own(range(10, 12))
    for number in range(3):
        both.target.append([number], producer_id=OTHER, sequence=number)
    with pytest.raises(ReconcileFailed, match="another producer writes"):
        both.find()


@given(st.lists(st.integers(1, 6), max_size=6), st.booleans())
def test_what_the_dead_owner_appended_is_found_exactly(sizes: list[int], fenced: bool) -> None:
    both, last = logs(source_values=60), 10
    for size in sizes:
        both.own(range(last, last + size))
        last += size
    if fenced:
        both.target.append([0], producer_id=OWN, is_control=True)
    found = both.find()
    assert (found.position, found.appended) == (last, last - 10)


def test_the_broker_may_have_replaced_the_timestamp() -> None:
    source, target = Record(0, 1, b"k", b"v"), Record(5, 2, b"k", b"v")
    assert not same_record(source, target, TargetLimits())
    assert same_record(source, target, TargetLimits(log_append_time=True))
    assert not same_record(source, target._replace(value=b"x"), TargetLimits(log_append_time=True))


def test_the_source_offsets_of_a_batch_follow_from_its_spans() -> None:
    assert list(source_offsets(((10, 3), (20, 2)))) == [10, 11, 12, 20, 21]


def logs_without_producer_id() -> Logs:
    made = logs()
    identity = LeaseIdentity(producer_id=NOT_IDEMPOTENT, producer_epoch=-1, anchor=0)
    made.lease = replace(made.lease, identity=identity)
    return made


def test_without_a_producer_id_both_logs_are_compared_record_by_record() -> None:
    made = logs_without_producer_id()
    made.target.append(range(10, 15))
    made.target.append(range(10, 15))  # a request of a lost connection
    made.target.append([99])
    made.target.append(range(15, 18))
    found = made.find()
    assert (found.position, found.appended, found.method) == (18, 8, ReconcileMethod.COMPARE)
    assert found.runs == (OffsetRun(10, 10, 5), OffsetRun(15, 21, 3))


def test_without_a_producer_id_nothing_new_on_the_target_resumes_at_the_ledger() -> None:
    found = logs_without_producer_id().find()
    assert (found.position, found.appended, found.runs) == (10, 0, ())


def test_without_a_producer_id_gaps_of_the_source_are_kept_in_the_runs() -> None:
    made = logs_without_producer_id()
    made.source.append([100, 101], skip=3)
    made.target.append(range(10, 40))
    made.target.append([100])
    found = made.find()
    assert (found.position, found.appended) == (44, 31)
    assert found.runs == (OffsetRun(10, 10, 30), OffsetRun(43, 40, 1))


def test_without_a_producer_id_a_batch_that_cannot_be_read_ends_the_comparison() -> None:
    """Its checksum is right, so a broker keeps it, and a task forwards it unopened."""
    made = logs_without_producer_id()
    made.target.append(range(10, 15))
    header, batch = made.target.batches.pop()
    damaged = bytearray(batch)
    damaged[HEADER_BYTES:] = b"\xff" * (len(batch) - HEADER_BYTES)
    made.target.batches.append((header, bytes(fix_checksum(damaged))))
    with pytest.raises(BatchError, match="the batch at offset 10"):
        made.find()


CAST_VALUES = {
    "transforms": "cast",
    "transforms.cast.type": "org.apache.kafka.connect.transforms.Cast$Value",
    "transforms.cast.spec": "int64",
    "sparkmirror.transform.value.format": "json",
}
"""Leaves values that are whole numbers as they are. Other texts fail."""
DROPPING = ConverterFactory.for_settings(CopySettings(transforms=DROP_MARKED))
"""Drops the records with odd values of `marked_logs`."""


def marked_logs(chain: str = DROPPING.chain) -> Logs:
    """Ten records that the ledger knows, and forty more; those with odd values are dropped."""
    made = Logs()
    made.converters = DROPPING
    made.lease = replace(made.lease, chain=chain)
    made.source.append(range(10))
    for first in range(10, 50, 5):
        made.source.append(range(first, first + 5), is_odd_marked=True)
    return made


@given(st.lists(st.integers(1, 4), max_size=4), st.booleans())
def test_what_an_owner_with_transformations_appended_is_found_exactly(
    sizes: list[int], fenced: bool
) -> None:
    both = marked_logs()
    kept = list(range(10, 50, 2))[: sum(sizes)]
    for at, size in zip(accumulate(sizes, initial=0), sizes, strict=False):
        both.own(kept[at : at + size])
    if fenced:
        both.target.append([0], producer_id=OWN, is_control=True)
    found = both.find()
    assert (found.position, found.appended) == (kept[-1] + 1 if kept else 10, len(kept))
    assert [run.source_first for run in found.runs] == kept
    assert [(run.target_first, run.length) for run in found.runs] == [
        (10 + number, 1) for number in range(len(kept))
    ]


def test_records_that_transformations_keep_are_walked_not_jumped_to() -> None:
    """The record at the offset of a jump is equal to the last one, and two offsets before it."""
    both = Logs()
    both.converters, both.lease = DROPPING, replace(both.lease, chain=DROPPING.chain)
    both.source.append(range(10))
    both.source.append([10, 11, 12, 13, 12, 13], is_odd_marked=True)
    both.own([10, 12, 12])
    found = both.find()
    assert (found.position, found.method) == (15, ReconcileMethod.WALK)


def test_foreign_records_between_transformed_ones_leave_target_offsets_unknown() -> None:
    both = marked_logs()
    both.own([10, 12])
    both.target.append([99], producer_id=OTHER, sequence=0)
    both.own([14])
    found = both.find()
    assert (found.position, found.appended, found.runs) == (15, 3, ())
    assert found.has_foreign_records


@pytest.mark.parametrize("identity", [OWN, NOT_IDEMPOTENT])
def test_what_other_transformations_appended_has_no_match(identity: int) -> None:
    both = marked_logs(chain="of another config")
    both.lease = replace(both.lease, identity=replace(both.lease.identity, producer_id=identity))
    assert both.find().position == 10, "nothing was appended"
    both.own([10, 12])
    with pytest.raises(ReconcileFailed, match="transforms of the connector were changed"):
        both.find()


def test_what_was_appended_before_the_connector_had_transformations_is_found() -> None:
    both = marked_logs(chain="")
    both.own(range(10, 13))
    found = both.find()
    assert (found.position, found.method) == (13, ReconcileMethod.JUMP)


@pytest.mark.parametrize("appended", [[10, 11], [10, 11, 13, 14]])
def test_what_an_owner_that_tolerated_errors_appended_is_found_by_one_that_does_not(
    appended: list[int],
) -> None:
    """The third of five records fails. If nothing follows it, its dead letter may be missing, so
    copying resumes at it."""
    letters = {"sparkmirror.errors.deadletterqueue.topic.name": "failed"}
    settings = CopySettings(transforms={**CAST_VALUES, **letters})
    both = Logs()
    both.converters = ConverterFactory.for_reconcile(settings)
    both.lease = replace(both.lease, chain=settings.chain)
    both.source.append(range(10))
    both.source.append([10, 11], value=b"%d")
    both.source.append([12], value=b"number %d")
    both.source.append([13, 14], value=b"%d")
    both.own(appended)
    found = both.find()
    assert (found.position, found.appended) == (appended[-1] + 1, len(appended))


def test_transformed_records_are_compared_without_a_producer_id() -> None:
    both = marked_logs()
    identity = LeaseIdentity(producer_id=NOT_IDEMPOTENT, producer_epoch=-1, anchor=0)
    both.lease = replace(both.lease, identity=identity)
    both.target.append([10, 12, 12, 14])
    found = both.find()
    assert (found.position, found.appended) == (15, 3)
    assert found.runs == (OffsetRun(10, 10, 1), OffsetRun(12, 11, 1), OffsetRun(14, 13, 1))

"""Resume points: the decision tables of the first lease of a partition."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparkmirror.copy.delivery import DeliveryMode
from sparkmirror.copy.driver.cluster_queries import LogRange
from sparkmirror.copy.driver.resume.data_loss import DataLoss, LossKind, find_loss
from sparkmirror.copy.driver.resume.resume_point_decision import (
    PartitionLogs,
    ResumeMode,
    ResumePoint,
    resume_mode,
    resume_point,
    start_offset,
)
from sparkmirror.copy.driver.resume.resume_point_finder import ResumePointFinder
from sparkmirror.copy.driver.tracked_partition import TrackedPartition
from sparkmirror.copy.job import StartMode, StartPosition
from sparkmirror.copy.lease import NOT_IDEMPOTENT, TRANSACTIONAL_IDENTITY, LeaseIdentity
from sparkmirror.copy.ledger import LedgerEntry, LedgerExtension
from sparkmirror.model import TopicPartition
from sparkmirror.wire.protocol.error_codes import ErrorCode
from tests.support.copy.scripted_clusters import ScriptedClusters, ScriptedFences, copy_job

SOURCE, TARGET = TopicPartition("t", 0), TopicPartition("A.t", 0)
IDENTITY = LeaseIdentity(producer_id=7, producer_epoch=1, anchor=3)
NEW_IDENTITY = LeaseIdentity(producer_id=9, producer_epoch=0, anchor=50)
SOURCE_RANGE = LogRange(start=0, end=200, high_watermark=200)
EXTENSION = LedgerExtension(
    expected=50,
    identity=IDENTITY,
    is_open=False,
    records=40,
    source_topic_id="s",
    target_topic_id="t",
    source_epoch=4,
)
FOREIGN = LedgerEntry(position=100)
CLOSED = LedgerEntry(position=100, extension=EXTENSION)
OPEN = LedgerEntry(position=100, extension=replace(EXTENSION, is_open=True))
TRANSACTIONAL = LedgerEntry(
    position=100, extension=replace(EXTENSION, identity=TRANSACTIONAL_IDENTITY)
)
WITHOUT_ID = LedgerEntry(
    position=100,
    extension=replace(EXTENSION, identity=replace(IDENTITY, producer_id=NOT_IDEMPOTENT)),
)


def logs(
    target_end: int = 50,
    source_range: LogRange = SOURCE_RANGE,
    source_topic_id: str = "s",
    target_topic_id: str = "t",
) -> PartitionLogs:
    return PartitionLogs(
        source=SOURCE,
        target=TARGET,
        source_range=source_range,
        target_end=target_end,
        source_topic_id=source_topic_id,
        target_topic_id=target_topic_id,
    )


def decide(
    entry: LedgerEntry, there: PartitionLogs, *, is_exactly_once: bool = False
) -> tuple[ResumeMode, ResumePoint]:
    loss = find_loss(entry, there.source_range, there.topic_ids)
    mode = resume_mode(entry, loss, there.target_end, is_exactly_once)
    identity = TRANSACTIONAL_IDENTITY if is_exactly_once else NEW_IDENTITY
    identity = replace(identity, anchor=min(identity.anchor, there.target_end))
    return mode, resume_point(mode, entry, loss, there, identity, is_exactly_once)


@pytest.mark.parametrize(
    ("entry", "target_end", "sequenced", "exactly_once"),
    [
        pytest.param(None, 50, ResumeMode.NEW, ResumeMode.NEW, id="no-entry"),
        pytest.param(FOREIGN, 50, ResumeMode.ADOPT, ResumeMode.ADOPT, id="offset-only"),
        pytest.param(CLOSED, 50, ResumeMode.CONTINUE, ResumeMode.CONTINUE, id="closed"),
        pytest.param(CLOSED, 51, ResumeMode.DOUBTFUL, ResumeMode.DOUBTFUL, id="target-longer"),
        pytest.param(CLOSED, 49, ResumeMode.DOUBTFUL, ResumeMode.DOUBTFUL, id="target-shorter"),
        pytest.param(OPEN, 50, ResumeMode.DOUBTFUL, ResumeMode.DOUBTFUL, id="open"),
        pytest.param(WITHOUT_ID, 50, ResumeMode.ADOPT, ResumeMode.ADOPT, id="without-producer-id"),
        pytest.param(
            WITHOUT_ID, 51, ResumeMode.DOUBTFUL, ResumeMode.DOUBTFUL, id="without-id-longer"
        ),
        pytest.param(
            TRANSACTIONAL, 50, ResumeMode.ADOPT, ResumeMode.COMMITTED, id="of-a-transaction"
        ),
        pytest.param(
            TRANSACTIONAL, 70, ResumeMode.ADOPT, ResumeMode.COMMITTED, id="transaction-longer"
        ),
    ],
)
def test_the_entry_and_the_end_of_the_target_decide_how_copying_resumes(
    entry: LedgerEntry | None, target_end: int, sequenced: ResumeMode, exactly_once: ResumeMode
) -> None:
    assert resume_mode(entry, None, target_end, is_exactly_once=False) is sequenced
    assert resume_mode(entry, None, target_end, is_exactly_once=True) is exactly_once


@pytest.mark.parametrize("entry", [CLOSED, OPEN, TRANSACTIONAL])
@pytest.mark.parametrize("is_exactly_once", [False, True])
def test_a_recreated_remote_topic_is_appended_to_under_a_new_identity(
    entry: LedgerEntry, is_exactly_once: bool
) -> None:
    there = logs(target_end=0, target_topic_id="other")
    mode, found = decide(entry, there, is_exactly_once=is_exactly_once)
    assert mode is ResumeMode.ADOPT
    assert found.loss
    assert found.loss.kind is LossKind.REMOTE_RECREATED
    assert found.lease
    assert (found.lease.position, found.lease.expected, found.lease.records) == (100, 0, 40)


def test_a_closed_entry_continues_its_lease_unchanged() -> None:
    _, found = decide(CLOSED, logs())
    assert found.lease
    assert found.lease.identity == IDENTITY
    assert (found.lease.position, found.lease.expected, found.lease.records) == (100, 50, 40)
    assert found.lease.source_epoch == 4
    assert (found.is_doubtful, found.loss, found.warning, found.source_end) == (
        *(False, None, ""),
        200,
    )


def test_an_adopted_offset_appends_at_the_end_of_the_target() -> None:
    _, found = decide(FOREIGN, logs(target_end=80))
    assert found.lease
    assert (found.lease.position, found.lease.expected, found.lease.records) == (100, 80, 0)
    assert found.lease.identity.producer_id == NEW_IDENTITY.producer_id


@pytest.mark.parametrize(
    ("entry", "epoch"),
    [(WITHOUT_ID, 4), (TRANSACTIONAL, 4), (FOREIGN, -1)],
    ids=["without-producer-id", "of-a-transaction", "offset-only"],
)
def test_an_adopted_lease_keeps_the_leader_epoch_that_shows_a_truncation(
    entry: LedgerEntry, epoch: int
) -> None:
    mode, found = decide(entry, logs())
    assert mode is ResumeMode.ADOPT
    assert found.lease
    assert found.lease.source_epoch == epoch


def test_an_entry_of_a_transaction_keeps_its_count_in_sequenced_mode() -> None:
    _, found = decide(TRANSACTIONAL, logs(target_end=80))
    assert found.lease
    assert (found.lease.position, found.lease.expected, found.lease.records) == (100, 80, 40)
    assert not found.lease.is_transactional


@pytest.mark.parametrize("is_exactly_once", [False, True])
def test_a_doubtful_lease_keeps_the_identity_that_must_be_fenced(is_exactly_once: bool) -> None:
    mode, found = decide(OPEN, logs(target_end=60), is_exactly_once=is_exactly_once)
    assert (mode, found.is_doubtful) == (ResumeMode.DOUBTFUL, True)
    assert found.lease
    assert (found.lease.identity, found.lease.expected) == (IDENTITY, 50)


def test_exactly_once_continues_a_closed_sequenced_entry_without_an_identity() -> None:
    _, found = decide(CLOSED, logs(), is_exactly_once=True)
    assert found.lease
    assert found.lease.is_transactional


@pytest.mark.parametrize(
    ("target_end", "expected", "warning"),
    [(50, 50, ""), (70, 50, ""), (30, 30, "ends at offset 30, not at 50")],
    ids=["same", "markers-behind", "truncated"],
)
def test_a_truncated_target_of_transactions_is_reported_and_appended_to(
    target_end: int, expected: int, warning: str
) -> None:
    mode, found = decide(TRANSACTIONAL, logs(target_end=target_end), is_exactly_once=True)
    assert mode is ResumeMode.COMMITTED
    assert found.lease
    assert found.lease.expected == expected
    assert warning in found.warning
    assert bool(found.warning) == bool(warning)


LOSSES = {
    LossKind.RETENTION: logs(source_range=LogRange(start=120, end=200, high_watermark=200)),
    LossKind.TRUNCATED: logs(source_range=LogRange(start=0, end=90, high_watermark=90)),
    LossKind.RECREATED: logs(source_topic_id="other"),
}


@pytest.mark.parametrize("kind", LOSSES)
def test_a_loss_is_reported_unless_the_position_is_doubtful(kind: LossKind) -> None:
    """Only a recreated topic counts for a doubtful position: the rest the first fetch finds."""
    for entry in (CLOSED, TRANSACTIONAL):
        for is_exactly_once in (False, True):
            _, found = decide(entry, LOSSES[kind], is_exactly_once=is_exactly_once)
            assert found.loss
            assert found.loss.kind is kind
    _, doubtful = decide(OPEN, LOSSES[kind])
    assert isinstance(doubtful.loss, DataLoss) == (kind is LossKind.RECREATED)


@pytest.mark.parametrize(
    ("start", "offset_for_time", "begins"),
    [
        pytest.param(StartPosition(), None, 10, id="earliest"),
        pytest.param(StartPosition(at=StartMode.LATEST), None, 40, id="latest"),
        pytest.param(StartPosition(at=StartMode.TIMESTAMP, timestamp_ms=5), 17, 17, id="time"),
        pytest.param(StartPosition(at=StartMode.TIMESTAMP, timestamp_ms=5), 0, 0, id="first"),
        pytest.param(StartPosition(at=StartMode.TIMESTAMP, timestamp_ms=5), -1, 40, id="late-time"),
        pytest.param(
            StartPosition(at=StartMode.TIMESTAMP, timestamp_ms=5),
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            40,
            id="no-answer",
        ),
        pytest.param(
            StartPosition(at=StartMode.OFFSETS, offsets={"t-0": 17}), None, 17, id="offsets"
        ),
        pytest.param(
            StartPosition(at=StartMode.OFFSETS, offsets={"t-1": 17}), None, 10, id="not-named"
        ),
    ],
)
def test_a_partition_without_an_entry_starts_where_the_job_says(
    start: StartPosition, offset_for_time: int | ErrorCode | None, begins: int
) -> None:
    there = LogRange(start=10, end=40, high_watermark=45)
    assert start_offset(start, SOURCE, there, offset_for_time) == begins


def finder(delivery: DeliveryMode = DeliveryMode.SEQUENCED) -> ResumePointFinder:
    clusters = ScriptedClusters.scripted()
    job = copy_job((SOURCE,), delivery=delivery)
    return ResumePointFinder(job, clusters, ScriptedFences(clusters))


def find(finder: ResumePointFinder, entry: LedgerEntry | None) -> ResumePoint:
    tracked = TrackedPartition(SOURCE, TARGET, 0)
    return finder.find([tracked], {SOURCE: entry} if entry else {})[tracked]


def test_a_new_partition_appends_at_the_end_under_the_identity_of_its_fence() -> None:
    found = find(finder(), None)
    assert found.lease
    assert (found.lease.position, found.lease.expected) == (0, 50)
    assert found.lease.identity == LeaseIdentity(producer_id=9, producer_epoch=2, anchor=50)
    transactional = find(finder(DeliveryMode.EXACTLY_ONCE), None)
    assert transactional.lease
    assert transactional.lease.is_transactional


@pytest.mark.parametrize(
    ("attribute", "error"),
    [
        ("source_range", "source: t-0: NOT_LEADER_OR_FOLLOWER"),
        ("target_end", "target: A.t-0: NOT_LEADER_OR_FOLLOWER"),
        ("topic_id", "source: t-0: NOT_LEADER_OR_FOLLOWER"),
        ("epoch_end", "source: t-0: NOT_LEADER_OR_FOLLOWER"),
    ],
)
def test_without_every_answer_there_is_no_lease(attribute: str, error: str) -> None:
    """A missing answer could hide a loss."""
    asking = finder()
    setattr(asking.clusters, attribute, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    found = find(asking, CLOSED)
    assert found.lease is None
    assert found.error.startswith(error), found.error


def test_the_end_of_the_leader_epoch_shows_a_truncation() -> None:
    asking = finder()
    asking.clusters = clusters = ScriptedClusters.scripted()
    clusters.epoch_end = 70
    found = find(asking, CLOSED)
    assert found.loss
    assert (found.loss.kind, found.loss.lost_from) == (LossKind.TRUNCATED, 70)

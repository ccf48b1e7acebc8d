"""What a takeover writes to the ledger: the claim of the next grant, or a closed entry."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from sparkmirror.copy.control.messages import Hello
from sparkmirror.copy.driver.fencing.doubtful_partition_resolver import DoubtfulPartitionResolver
from sparkmirror.copy.driver.fencing.fence import LogEnd
from sparkmirror.copy.driver.fencing.takeover import Takeover
from sparkmirror.copy.driver.fencing.transactional_id_fencing import TransactionalIdFencing
from sparkmirror.copy.driver.fencing.transactional_takeover import TransactionalTakeover
from sparkmirror.copy.driver.job_partitions import JobPartitions
from sparkmirror.copy.driver.lease_grants import LeaseGranter
from sparkmirror.copy.driver.ledger_cache import LedgerCache
from sparkmirror.copy.driver.lost_attempt_receipts import LostAttemptReceipts
from sparkmirror.copy.driver.monitoring.event_log import EventLog
from sparkmirror.copy.driver.offset_translation_publisher import OffsetTranslationPublisher
from sparkmirror.copy.driver.resume.resume_point_finder import ResumePointFinder
from sparkmirror.copy.driver.sharing.worker_group_membership import GroupMembership
from sparkmirror.copy.driver.tracked_partition import LeaseState, TrackedPartition
from sparkmirror.copy.lease import Lease, LeaseIdentity
from sparkmirror.copy.ledger import LedgerChange, LedgerEntry, entry_for_lease
from sparkmirror.errors import ClusterUnavailable
from sparkmirror.model import TopicPartition
from tests.support.copy.scripted_clusters import (
    FENCE_PRODUCER,
    InMemoryLedger,
    ScriptedClusters,
    ScriptedFences,
    copy_job,
)

SOURCE, TARGET = TopicPartition("t", 0), TopicPartition("A.t", 0)
LEASE = Lease(
    source=SOURCE,
    target=TARGET,
    position=100,
    expected=50,
    identity=LeaseIdentity(producer_id=FENCE_PRODUCER.producer_id, producer_epoch=1, anchor=3),
)
FOREIGN = entry_for_lease(replace(LEASE, conductor="b"), is_open=True)


class Scene:
    """A partition whose owner disappeared without appending more than it reported."""

    def __init__(self, conductor: str = "") -> None:
        self.lock, self.ledger, self.events = threading.Lock(), InMemoryLedger(), EventLog()
        self.cache = LedgerCache(self.ledger, self.lock, conductor=conductor)
        clusters, job = ScriptedClusters.scripted(), copy_job((SOURCE,), is_shared=bool(conductor))
        fences, membership = ScriptedFences(clusters), GroupMembership(is_required=bool(conductor))
        fences.outcome = LogEnd(FENCE_PRODUCER, 51, has_marker_at_end=True)
        progress = OffsetTranslationPublisher(None, None)
        partitions = JobPartitions(job=job, ledger_cache=self.cache, progress=progress)
        self.resolver = DoubtfulPartitionResolver(
            job_partitions=partitions,
            takeover=Takeover(
                clusters=clusters,
                fences=fences,
                publish=self.events.publish,
                lease_timeout_s=15.0,
            ),
            transactional_takeover=TransactionalTakeover(
                clusters=clusters,
                transactional_ids=TransactionalIdFencing(clusters.target, job),
                ledger_cache=self.cache,
                publish=self.events.publish,
                lock=self.lock,
            ),
            ledger_cache=self.cache,
            lease_granter=LeaseGranter(
                clusters,
                ResumePointFinder(job, clusters, fences),
                self.cache,
                self.events,
                job.on_loss,
                membership,
            ),
            pending_receipts=LostAttemptReceipts(lambda: 0),
            membership=membership,
            lock=self.lock,
        )
        self.tracked: TrackedPartition = partitions.tracked[SOURCE]
        self.tracked.set_lease(LEASE)
        self.tracked.grant_to(Hello(task=0, attempt=0, host="h", pid=1))
        self.tracked.release(clean=False, now=0.0)

    def is_open(self) -> bool:
        stored = self.ledger.entries[SOURCE].extension
        assert stored
        return stored.is_open


@pytest.mark.parametrize("conductor", ["", "a"], ids=["alone", "shared"])
def test_the_grant_after_a_takeover_writes_nothing_more(conductor: str) -> None:
    scene = Scene(conductor)
    scene.resolver.resolve(1.0, [scene.tracked])
    assert scene.tracked.state is LeaseState.WAITING
    assert scene.cache.claim([scene.tracked]) == {scene.tracked}
    assert len(scene.ledger.writes) == 1
    assert scene.is_open()
    assert scene.ledger.entries[SOURCE].position == 100
    assert not scene.tracked.is_dirty


def test_the_entry_of_a_takeover_without_a_grant_is_closed_by_the_next_flush() -> None:
    """So that the next driver needs no fence."""
    scene = Scene()
    scene.resolver.resolve(1.0, [scene.tracked])
    assert scene.is_open()
    scene.cache.flush([scene.tracked])
    assert not scene.is_open()
    scene.cache.flush([scene.tracked])
    assert len(scene.ledger.writes) == 2


@pytest.mark.parametrize("is_first", [True, False], ids=["before", "after"])
def test_a_foreign_record_beside_that_of_the_takeover_ends_the_claim(is_first: bool) -> None:
    scene = Scene("a")
    scene.resolver.resolve(1.0, [scene.tracked])
    change = LedgerChange(SOURCE, FOREIGN)
    scene.ledger.log.insert(0 if is_first else len(scene.ledger.log), change)
    assert scene.cache.claim([scene.tracked]) == set()
    assert scene.cache.entries[SOURCE] == FOREIGN


def test_after_a_write_that_failed_the_grant_writes_the_claim() -> None:
    scene = Scene("a")
    scene.ledger.error = ClusterUnavailable("A", "no leader")
    with pytest.raises(ClusterUnavailable):
        scene.resolver.resolve(1.0, [scene.tracked])
    scene.ledger.error = None
    written: list[dict[TopicPartition, LedgerEntry]] = scene.ledger.writes
    assert (written, scene.tracked.is_dirty) == ([], True)
    assert scene.cache.claim([scene.tracked]) == {scene.tracked}
    assert (len(written), scene.is_open()) == (1, True)

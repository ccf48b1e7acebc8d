"""Existing records: of which partitions the last one is searched at the source."""

from __future__ import annotations

from dataclasses import replace

from sparkmirror.copy.driver.cluster_queries import LogRange
from sparkmirror.copy.driver.resume.existing.existing_records_finder import ExistingRecordsFinder
from sparkmirror.copy.driver.resume.existing.on_existing_policy import (
    ExistingDecision,
    ExistingPartition,
)
from sparkmirror.model import TopicPartition
from tests.support.copy.scripted_clusters import ScriptedClusters, copy_job
from tests.support.copy.transform_chains import DROP_MARKED

OPEN_TRANSACTION = LogRange(start=0, end=40, high_watermark=41)
"""A search ends here before it reads anything."""


def existing(topic: str) -> ExistingPartition:
    return ExistingPartition(
        source=TopicPartition(topic, 0),
        target=TopicPartition(f"A.{topic}", 0),
        source_range=LogRange(start=5, end=90, high_watermark=90),
        target_range=OPEN_TRANSACTION,
        start=7,
    )


def test_records_of_topics_that_are_not_transformed_are_searched_beside_transformed_ones() -> None:
    orders, heartbeats = existing("orders"), existing("heartbeats")
    job = copy_job((orders.source, heartbeats.source), untransformed_topics=("heartbeats",))
    job = replace(job, settings=replace(job.settings, transforms=DROP_MARKED))
    finder = ExistingRecordsFinder(ScriptedClusters.scripted())
    decisions = finder.decide(job, {one.source: one for one in (orders, heartbeats)})
    held = decisions[orders.source]
    assert isinstance(held, ExistingDecision)
    assert "transforms change or drop records" in held.text
    searched = decisions[heartbeats.source]
    assert isinstance(searched, str)
    assert "a transaction is open" in searched

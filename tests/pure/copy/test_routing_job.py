"""Jobs whose query computes `topic`: they copy in transactions, or say why they cannot."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparkmirror.copy.driver.conductor import Conductor
from sparkmirror.copy.job import CopyJob, may_copy_in_transactions, routing_job
from sparkmirror.copy.settings import CopySettings
from sparkmirror.errors import ConfigError
from sparkmirror.model import TopicPartition
from sparkmirror.worker.spark.copy_job_comparison import is_same_but_for_tasks
from tests.support.copy.record_evaluators import QUERY, KeyAsTopicEvaluator, UppercaseEvaluator
from tests.support.copy.scripted_clusters import InMemoryLedger

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)
JOB = CopyJob(
    connector="c",
    group_id="g",
    settings=CopySettings(
        source={"bootstrap.servers": "a:1"},
        target={"bootstrap.servers": "b:1, c:1"},
        transforms=QUERY,
    ),
    offsets_topic="offsets",
    remote_topics={"t": "A.t"},
    tasks={0: (FIRST,)},
    task_count=1,
)


def test_a_query_that_computes_topic_is_copied_in_transactions_also_after_another_plan() -> None:
    plain = Conductor(JOB, InMemoryLedger(), new_evaluator=lambda _: UppercaseEvaluator())
    assert not plain.job.is_exactly_once
    plain.stop()
    routing = Conductor(JOB, InMemoryLedger(), new_evaluator=lambda _: KeyAsTopicEvaluator())
    assert routing.job.is_exactly_once
    assert routing.job == routing_job(JOB)
    routing.stop()


def test_its_offsets_must_be_on_the_target() -> None:
    elsewhere = replace(JOB, offsets_client={"bootstrap.servers": "w:1"})
    with pytest.raises(ConfigError, match="need the source offsets in the target cluster"):
        routing_job(elsewhere)
    assert routing_job(replace(JOB, offsets_client={"bootstrap.servers": "c:1"})).is_exactly_once


def test_it_has_no_dead_letters() -> None:
    letters = {
        **QUERY,
        "errors.tolerance": "all",
        "sparkmirror.errors.deadletterqueue.topic.name": "failed",
    }
    with pytest.raises(ConfigError, match="not supported with a query that computes topic"):
        routing_job(replace(JOB, settings=replace(JOB.settings, transforms=letters)))


def test_a_job_with_a_query_starts_again_with_other_partitions_of_its_tasks() -> None:
    """The worker does not know whether the query needs transactions: then tasks are fenced."""
    grown = replace(JOB, tasks={0: (FIRST, SECOND)})
    assert may_copy_in_transactions(JOB)
    assert not is_same_but_for_tasks(JOB, grown)
    settings = replace(JOB.settings, transforms={})
    assert is_same_but_for_tasks(replace(JOB, settings=settings), replace(grown, settings=settings))
